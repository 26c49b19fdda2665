"""Sphinx reads docs/_build/source, which tools/build_site.py writes, by the rules of this file."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from importlib.metadata import files
from pathlib import Path
from shutil import copyfile
from typing import Any

from docutils import nodes

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tools")]

from build_site import public_names

import gramian

project = "Gramian"
author = "The Gramian developers"
copyright = f"2026, {author}"
version = release = gramian.__version__

extensions = [
    "myst_parser", "sphinx.ext.autodoc", "sphinx.ext.linkcode", "sphinx.ext.mathjax", "numpydoc", "sphinx_copybutton",
    "sphinx_design",
]  # fmt: skip
exclude_patterns = ["files.json"]
nitpicky = True
# Other people's pages are on the network, which no page of this site needs: their names are text.
nitpick_ignore_regex = [
    ("py:.*", rf"({name})(\..*)?") for name in ("numpy", "scipy", "sklearn", "matplotlib", "pandas")
]
suppress_warnings = ["config.cache"]

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4
myst_dmath_double_inline = False
myst_links_external_new_tab = False

autodoc_typehints = "none"
autodoc_class_signature = "mixed"
autodoc_default_options = {"member-order": "bysource"}
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = "Gramian"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["figures.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_search_summary = False  # it is fetched, which a browser refuses to a page from a folder
html_context = {"default_mode": "auto"}
html_sidebars = {"source/**": [], "equations": [], "index": []}
html_theme_options = {
    "show_toc_level": 2,
    "navigation_depth": 2,
    "collapse_navigation": True,
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "use_edit_page_button": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

# MathJax as one file that brings its glyphs as outlines: nothing is fetched, from a folder on disk as from a server.
mathjax_path = "mathjax/tex-svg.js"
mathjax_options = {"defer": "defer"}
mathjax3_config = {
    "svg": {"fontCache": "local"},
    "tex": {"tags": "none"},
    "options": {"enableMenu": False},
}

HOMES = {id(public.value): public.path for public in public_names() if callable(public.value)}


def linkcode_resolve(domain: str, info: dict[str, Any]) -> str | None:
    """Where the source of a public name is shown, seen from a page of the reference."""
    value: Any = importlib.import_module(info["module"])
    for part in info["fullname"].split("."):
        value = getattr(value, part, None)
    try:
        value = inspect.unwrap(value.fget if isinstance(value, property) else value)
        file = Path(inspect.getsourcefile(value) or "").resolve().relative_to(ROOT / "src")  # none of .venv beside it
        line = inspect.getsourcelines(value)[1]
    except (TypeError, OSError, ValueError, AttributeError):
        return None
    return f"../source/src/{file}.html" + (f"#line-{line}" if line else "")


LITERAL = re.compile(r"``.+?``|:[\w:]+:`[^`]*`|`[^`]*`_?|\[\w+\]_|\*\*.+?\*\*")
ROLE_SPACE = re.compile(r"(?<=\w)(?=:\w+:`)")


def plain_text(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape what docstrings mean as it stands: |x| is a length and coef_ a name, not markup.

    Runs on what numpydoc has made of them; examples, formulas and directives are left as they are.
    """
    block: int | None = None
    for i, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if block is not None and line.strip() and indent <= block:
            block = None
        if block is not None or line.lstrip().startswith((">>>", "...")):
            continue
        if line.lstrip().startswith(".. ") or line.rstrip().endswith("::"):
            if re.match(r"\s*\.\. (math|code|plot)", line) or not line.lstrip().startswith(".. "):
                block = indent
            continue
        parts, end = [], 0
        for kept in LITERAL.finditer(line):
            parts += [_escape(line[end : kept.start()]), kept.group()]
            end = kept.end()
        lines[i] = "".join([*parts, _escape(line[end:])])


def _escape(text: str) -> str:
    text = text.replace("|", "\\|")
    text = re.sub(r"(\w)_(?!\w)", r"\1\\_", text)
    return re.sub(r"(?<!\*)\*(?!\*)", r"\\*", text)


def skip_foreign(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what a class inherits from other libraries: it is described where it comes from."""
    if inspect.isbuiltin(obj) or inspect.ismethoddescriptor(obj):
        return True
    function = obj.fget if isinstance(obj, property) else obj
    module = getattr(inspect.unwrap(function) if callable(function) else function, "__module__", None)
    return True if isinstance(module, str) and not module.startswith("gramian") else None


def find(path: str) -> Any:
    """The object with this dotted name, or None; a field of a dataclass is found as its class."""
    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for part in parts[cut:]:
            value = value if part in getattr(value, "__dataclass_fields__", ()) else getattr(value, part, None)
        return value
    return None


def resolve(app: Any, env: Any, node: Any, contnode: Any) -> Any:
    """Turn a reference by the module that defines a name into one to the page of its public name, or to its source."""
    target = str(node.get("reftarget", ""))
    names = [target]
    # A docstring may name what its own class or module defines.
    if described := re.search(r"docstring of (gramian[\w.]*)", str(node.source or contnode.source or "")):
        parts = described.group(1).split(".")
        names += [".".join([*parts[:cut], target]) for cut in range(len(parts), 0, -1)]
    value = next(filter(None, map(find, (name for name in names if name.startswith("gramian")))), None)
    if value is None:
        return None
    up = "../" * str(node.get("refdoc", env.docname)).count("/")
    owner = getattr(inspect.getmodule(value), str(getattr(value, "__qualname__", "")).split(".")[0], None)
    if home := HOMES.get(id(value)) or HOMES.get(id(owner)):
        uri = f"{up}reference/{home}.html"
    else:
        value = value.fget if isinstance(value, property) else value
        file = Path(inspect.getsourcefile(value) or "").resolve().relative_to(ROOT / "src")
        line = "" if inspect.ismodule(value) else f"#line-{inspect.getsourcelines(value)[1]}"
        uri = f"{up}source/src/{file}.html{line}"
    return nodes.reference("", "", contnode, refuri=uri, internal=True)


def show_files(app: Any) -> Any:
    """A page for every file of the repository that a page links to, with an anchor for every line."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import TextLexer, get_lexer_for_filename
    from pygments.util import ClassNotFound

    formatter = HtmlFormatter(lineanchors="line", linespans=None, cssclass="highlight source")
    for name in json.loads((Path(app.srcdir) / "files.json").read_text("utf-8")):
        try:
            lexer = get_lexer_for_filename(name)
        except ClassNotFound:
            lexer = TextLexer()
        body = highlight((ROOT / name).read_text("utf-8"), lexer, formatter)
        yield f"source/{name}", {"title": name, "body": f"<h1>{name}</h1>{body}"}, "page.html"


def copy_mathjax(app: Any) -> None:
    """Copy MathJax from the package that brings it."""
    place = Path(app.outdir) / "_static" / "mathjax"
    place.mkdir(parents=True, exist_ok=True)
    for file in files("sphinx-mathjax-offline") or []:
        if file.name == "tex-svg.js":
            copyfile(str(file.locate()), place / file.name)


def setup(app: Any) -> dict[str, bool]:
    """Connect the functions of this file."""
    app.connect("autodoc-process-docstring", plain_text, priority=900)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("missing-reference", resolve)
    app.connect("html-collect-pages", show_files)
    app.connect("builder-inited", copy_mathjax)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
