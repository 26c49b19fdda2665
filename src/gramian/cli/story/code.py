"""The code that a page shows: what really ran, with the imports it needs, ready to be pasted."""

from __future__ import annotations

import ast
import builtins
import inspect
import io
import keyword
import sys
import textwrap
import token
import tokenize
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

__all__ = ["coloured", "listing"]


def listing(draw: Callable[..., Any], given: Mapping[str, Any] | None = None) -> str:
    """Return the source of a function that draws, the imports and constants it uses, and the call that was made.

    Parameters
    ----------
    draw : callable
        A function of a module, which returns a picture and more.
    given : mapping, optional
        Arguments of the call.

    Returns
    -------
    str
        Python, which draws the picture and saves it under the name of the function.

    Examples
    --------
    >>> from gramian.cli.story.code import listing
    >>> from gramian.cli.story.components import iris
    >>> print(listing(iris).splitlines()[-1])
    save_picture(picture, "iris.png")
    """
    module = ast.parse(inspect.getsource(sys.modules[draw.__module__]))
    source = textwrap.dedent(inspect.getsource(draw))
    function = ast.parse(source).body[0]
    constants = [node for node in module.body if isinstance(node, ast.Assign) and _targets(node) & _names(function)]
    used = _names(function).union(*(_names(node) for node in constants))
    arguments = ", ".join(f"{name}={value!r}" for name, value in (given or {}).items())
    calls = f'{_returned(function)} = {draw.__name__}({arguments})\nsave_picture(picture, "{draw.__name__}.png")'
    head = "\n".join(ast.unparse(node) for node in constants)
    parts = (_imports(module, used), head, f"\n{source.rstrip()}\n", calls)
    return "\n".join(part for part in parts if part) + "\n"


def _targets(node: ast.Assign) -> set[str]:
    return {target.id for target in node.targets if isinstance(target, ast.Name)} - {"__all__"}


def _names(node: ast.AST) -> set[str]:
    """Names that are read; annotations are among them."""
    return {item.id for item in ast.walk(node) if isinstance(item, ast.Name)} - set(dir(builtins))


def _returned(function: ast.AST) -> str:
    """What the last line returns, the picture under its own name."""
    last = function.body[-1] if isinstance(function, ast.FunctionDef) else None
    given = last.value.elts if isinstance(last, ast.Return) and isinstance(last.value, ast.Tuple) else []
    names = [item.id for item in given if isinstance(item, ast.Name)]
    if not names or len(names) < len(given):
        raise TypeError("A function that draws ends by returning a picture and what it shows, each under a name.")
    return ", ".join(["picture", *names[1:]])


def _imports(module: ast.Module, used: set[str]) -> str:
    """The import lines of a module for these names, and for saving a picture."""
    lines = []
    for node in module.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            kept = [alias for alias in node.names if (alias.asname or alias.name) in used]
            if isinstance(node, ast.ImportFrom) and node.module == "gramian.display":
                kept.append(ast.alias("save_picture"))
            node.names = kept
            if kept:
                lines.append(ast.unparse(node))
    return "\n".join(lines)


def coloured(source: str) -> str:
    """Return Python as HTML, with keywords, strings, numbers and comments marked.

    Examples
    --------
    >>> from gramian.cli.story.code import coloured
    >>> coloured("return 1 < 2")
    '<span class="k">return</span> <span class="n">1</span> &lt; <span class="n">2</span>'
    """
    lines, out, at = source.splitlines(keepends=True), [], (1, 0)
    for item in tokenize.generate_tokens(io.StringIO(source).readline):
        if item.type in (token.NEWLINE, token.NL, token.INDENT, token.DEDENT, token.ENDMARKER):
            continue
        out.append(escape(_between(lines, at, item.start)))
        kind = _kind(item)
        out.append(f'<span class="{kind}">{escape(item.string)}</span>' if kind else escape(item.string))
        at = item.end
    return "".join(out)


def _between(lines: list[str], start: tuple[int, int], stop: tuple[int, int]) -> str:
    """The white space between two tokens."""
    if start[0] == stop[0]:
        return lines[start[0] - 1][start[1] : stop[1]]
    whole = lines[start[0] : stop[0] - 1]
    return lines[start[0] - 1][start[1] :] + "".join(whole) + lines[stop[0] - 1][: stop[1]]


def _kind(item: tokenize.TokenInfo) -> str:
    if item.type == token.NAME:
        return "k" if keyword.iskeyword(item.string) else ""
    return {token.STRING: "s", token.NUMBER: "n", tokenize.COMMENT: "c"}.get(item.type, "")
