"""Check the prose of the Markdown pages: sentences that a reader has to read twice, and words that stand twice.

Usage: python tools/check_prose.py FILE_OR_FOLDER [FILE_OR_FOLDER ...]

Spelling is codespell's (``make lint`` runs both). What is no prose is left out: code, formulas, tables, links' targets.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

# A sentence of more words than this is two sentences, or a list.
LONGEST = 40
NO_PROSE = re.compile(
    r"^(```+|~~~+).*?^\1|^\$\$.*?^\$\$|<!--.*?-->|^\|.*?$|^#.*?$|^ {4,}.*?$|^\[[^\]]+\]:.*?$", re.MULTILINE | re.DOTALL
)
INLINE = re.compile(r"`+[^`]*`+|\$[^$]*\$|\]\([^)]*\)|https?://\S+")
# A sentence ends at a stop before a blank, or with its paragraph; the parts of a list are sentences of their own.
END = re.compile(r"[.!?:;]['\")*_]*\s+|\n\s*\n|\n\s*(?:[-*+]|\d+\.)\s")
TWICE = re.compile(r"\b([A-Za-z]{2,})\s+\1\b")
ALLOWED_TWICE = {"that", "had", "by"}


def blank(match: re.Match[str]) -> str:
    """As many lines as there were, so that lines keep their numbers."""
    return "\n" * match.group().count("\n")


def check_page(path: Path) -> list[str]:
    """What is wrong with a page, by line."""
    text = INLINE.sub(" x ", NO_PROSE.sub(blank, path.read_text("utf-8")))
    wrong, start = [], 0
    for end in [*END.finditer(text), None]:
        stop = end.end() if end else len(text)
        sentence = text[start : end.start() if end else stop]
        line = text.count("\n", 0, start + len(sentence) - len(sentence.lstrip())) + 1
        words = re.findall(r"[^\W_][\w'’-]*", sentence)
        if len(words) > LONGEST:
            wrong.append(f"{path}:{line}: a sentence of {len(words)} words: {' '.join(words[:8])} …")
        for twice in TWICE.finditer(sentence):
            if twice.group(1) not in ALLOWED_TWICE:
                wrong.append(f"{path}:{line}: {twice.group()!r}")
        start = stop
    return wrong


def main(names: list[str]) -> int:
    """Check every page; 1 where one is wrong."""
    pages = [
        page
        for name in map(Path, names)
        for page in (sorted(name.rglob("*.md")) if name.is_dir() else [name])
        if "_build" not in page.parts
    ]
    wrong = [line for page in pages for line in check_page(page)]
    print("\n".join([*wrong, f"{len(pages)} pages, {len(wrong)} to mend"]))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
