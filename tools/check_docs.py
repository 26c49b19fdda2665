"""Run every example of the documents and follow their internal links; exit 1 with a list of what is broken.

Usage: python tools/check_docs.py FILE_OR_FOLDER ...
"""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+\s+(.+?)\s*$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def documents(names: list[str]) -> list[Path]:
    """Return the Markdown files named, or found in the folders named, without those that the site is built from."""
    paths = [Path(name) for name in names]
    found = {file for path in paths for file in (path.rglob("*.md") if path.is_dir() else [path])}
    return sorted(file for file in found if "_build" not in file.parts)


def anchors(text: str) -> set[str]:
    """Return the anchors of the headings, made as the usual Markdown renderers make them."""
    headings = HEADING.findall(FENCE.sub("", text))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(path: Path) -> list[str]:
    """Return a line for every relative link whose file or heading is not there."""
    found = []
    for link in LINK.findall(FENCE.sub("", path.read_text("utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        if not target.exists():
            found.append(f"{path}: no file {name}")
        elif anchor and anchor not in anchors(target.read_text("utf-8")):
            found.append(f"{path}: no heading #{anchor} in {target}")
    return found


def failed_examples(path: Path) -> tuple[int, int]:
    """Run the ``>>>`` examples of one document; return how many failed, of how many."""
    # A closing fence would else be read as expected output.
    text = path.read_text("utf-8").replace("\n```", "\n\n")
    test = doctest.DocTestParser().get_doctest(text, {"__name__": "__main__"}, path.name, str(path), 0)
    result = doctest.DocTestRunner(optionflags=FLAGS).run(test)
    return result.failed, result.attempted


def main(names: list[str]) -> int:
    """Check all documents; return the exit status."""
    files = documents(names)
    links = [line for path in files for line in broken_links(path)]
    counts = [failed_examples(path) for path in files]
    failed, run = (sum(column) for column in zip(*counts, strict=True))
    print(*links, sep="\n", end="\n" if links else "")
    print(f"{len(files)} documents, {run} examples ({failed} failed), {len(links)} broken links")
    return 1 if failed or links else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
