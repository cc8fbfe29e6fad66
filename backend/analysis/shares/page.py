"""A page that is one HTML file: text, tables and figures, which a script in it draws. Nothing is loaded from
anywhere, in light and dark themes."""

import gzip
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from typing import Any

import orjson

from backend.drawing.figure import Figure

SCRIPT_NAME = "plotly.js"


@dataclass(frozen=True)
class Table:
    """A table of texts."""

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    n_left: int = 1
    """The first columns, whose texts are aligned to the left; those of the others to the right."""


@dataclass(frozen=True)
class Chart:
    """A figure as it is drawn in each theme."""

    light: Figure
    dark: Figure
    label: str
    """For screen readers."""


@dataclass(frozen=True)
class Code:
    """Lines of a terminal."""

    lines: Sequence[str]


Block = str | Table | Chart | Code
"""A paragraph, or one of the others."""


@dataclass(frozen=True)
class Section:
    """A heading and what follows it."""

    heading: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Page:
    """A page."""

    title: str
    about: str
    """A line under the title."""
    sections: Sequence[Section]


def to_html(page: Page, *, is_served: bool) -> str:
    """The page as HTML.

    Args:
        page: the page.
        is_served: whether this server shows it, which has the library that draws figures beside it;
            otherwise that is in the file.
    """
    charts: list[Chart] = []
    body = "".join(_section(section, charts) for section in page.sections)
    library = ""
    if charts:
        library = (
            f'<script src="{SCRIPT_NAME}"></script>' if is_served else f"<script>{plotly_script()}</script>"
        )
    # A browser ends any script at the first `</script`.
    data = orjson.dumps([_document(chart) for chart in charts]).decode().replace("<", "\\u003c")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(is_served=is_served)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="robots" content="noindex">\n'
        f"<title>{escape(page.title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(page.title)}</h1>\n<p class=muted>{escape(page.about)}</p>\n{body}</main>\n"
        f'<script type="application/json" id="figures">{data}</script>\n'
        f"{library}\n<script>{_DRAW}</script>\n</body>\n</html>\n"
    )


@cache
def policy(*, is_served: bool) -> str:
    """The content security policy: nothing but the scripts of the page itself."""
    scripts = f"'self' {_hash(_DRAW)}" if is_served else f"{_hash(plotly_script())} {_hash(_DRAW)}"
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def plotly_script() -> str:
    """The library that draws figures."""
    from plotly.offline import get_plotlyjs  # slow to import (0.3 s)

    script: str = get_plotlyjs()
    return script.replace("</script", "<\\/script")


@cache
def compressed_script() -> bytes:
    """`plotly_script` with gzip."""
    return gzip.compress(plotly_script().encode(), mtime=0)


def _hash(script: str) -> str:
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"


def _section(section: Section, charts: list[Chart]) -> str:
    blocks = "".join(_block(block, charts) for block in section.blocks)
    return f"<section>\n<h2>{escape(section.heading)}</h2>\n{blocks}</section>\n"


def _block(block: Block, charts: list[Chart]) -> str:
    if isinstance(block, str):
        return f"<p>{escape(block)}</p>\n"
    if isinstance(block, Code):
        return f"<pre tabindex=0>{escape(chr(10).join(block.lines))}</pre>\n"
    if isinstance(block, Chart):
        charts.append(block)
        return f'<div class=chart role=group aria-label="{escape(block.label)}"></div>\n'
    sides = ["" if at < block.n_left else " class=right" for at in range(len(block.titles))]
    head = "".join(f"<th{side}>{escape(title)}</th>" for side, title in zip(sides, block.titles, strict=True))
    rows = "".join(
        "<tr>"
        + "".join(f"<td{side}>{escape(cell)}</td>" for side, cell in zip(sides, row, strict=True))
        + "</tr>\n"
        for row in block.rows
    )
    return f"<div class=scroll tabindex=0><table>\n<tr>{head}</tr>\n{rows}</table></div>\n"


def _document(chart: Chart) -> dict[str, Any]:
    """The figure in the light theme, and what of it differs in the dark one."""
    light, dark = chart.light.document(), chart.dark.document()
    return {
        "data": light["data"],
        "layout": light.get("layout", {}),
        "dark": {
            "data": [_changed(*pair) for pair in zip(light["data"], dark["data"], strict=True)],
            "layout": _changed(light.get("layout", {}), dark.get("layout", {})),
        },
    }


def _changed(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in after.items() if before.get(name) != value}


_DRAW = """
const figures = JSON.parse(document.getElementById('figures').textContent);
const dark = matchMedia('(prefers-color-scheme: dark)');
const boxes = document.querySelectorAll('.chart');
function draw() {
  figures.forEach((figure, at) => {
    const other = dark.matches ? figure.dark : { data: [], layout: {} };
    const data = figure.data.map((trace, k) => ({ ...trace, ...other.data[k] }));
    const layout = { ...figure.layout, ...other.layout, autosize: true };
    const narrow = boxes[at].clientWidth < 560;
    if (narrow) layout.title = { ...layout.title, text: '', subtitle: { text: '' } };
    layout.margin = { ...layout.margin, ...(narrow ? { t: 12 } : {}) };
    delete layout.width;
    Plotly.react(boxes[at], data, layout, { responsive: true, displaylogo: false });
  });
}
if (figures.length) draw();
dark.addEventListener('change', draw);
"""

_STYLE = """
:root { color-scheme: light dark; --ground: #fbfbfc; --panel: #fff; --text: #1b1e23; --muted: #59616c;
  --line: #e6e8ec }
@media (prefers-color-scheme: dark) { :root { --ground: #0f1115; --panel: #15181e; --text: #e4e6e9;
  --muted: #9da5b0; --line: #242933 } }
* { box-sizing: border-box }
body { margin: 0; background: var(--ground); color: var(--text);
  font: 14px/20px Inter, system-ui, sans-serif; font-variant-numeric: tabular-nums }
main { max-width: 1100px; margin: 0 auto; padding: 24px 16px 48px }
h1 { margin: 0; font-size: 20px; line-height: 28px; overflow-wrap: anywhere }
h2 { margin: 28px 0 8px; font-size: 15px; line-height: 20px }
p { margin: 4px 0 8px; overflow-wrap: anywhere }
.muted { color: var(--muted) }
.chart { height: 420px; margin-bottom: 12px; background: var(--panel); border: 1px solid var(--line);
  border-radius: 8px; overflow: hidden }
.scroll, pre { overflow-x: auto; background: var(--panel); border: 1px solid var(--line); border-radius: 8px;
  margin: 8px 0 }
table { border-collapse: collapse; width: 100% }
th, td { padding: 6px 12px; text-align: left; vertical-align: top; border-top: 1px solid var(--line) }
tr:first-child > * { border-top: 0 }
th { color: var(--muted); font-weight: 600; white-space: nowrap }
td:first-child { min-width: 140px }
.right { text-align: right; white-space: nowrap }
pre { padding: 12px; font: 12px/18px ui-monospace, monospace }
@media print { .chart, tr, pre { break-inside: avoid } pre { white-space: pre-wrap } }
"""
