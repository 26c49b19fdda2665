"""The command line, by ``python -m gramian`` too."""

from gramian.cli import main

if __name__ == "__main__":
    main(prog_name="gramian")
