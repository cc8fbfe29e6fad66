"""The caption of an exported figure: what is drawn, and of how many runs."""

import re
from collections.abc import Sequence

from backend.drawing.export_series import DrawnSeries, drawn_series, plain
from backend.drawing.figure import Figure
from backend.drawing.gaps import hatched


def caption(figure: Figure, results: Sequence[str] = ()) -> str:
    """The figure's title, its series with their numbers of seeds, how they are drawn, and how they differ.

    Args:
        figure: any, with a title and a subtitle.
        results: how the groups that it shows differ, in sentences.

    Raises:
        ValueError: the figure has a trace that cannot be exported.
    """
    title = figure.layout.get("title") or {}
    heading = title if isinstance(title, str) else title.get("text", "")
    below = "" if isinstance(title, str) else (title.get("subtitle") or {}).get("text", "")
    title_text = plain(heading).replace("\n", " ")
    named = _legend_entries(drawn_series(figure))
    if len(named) == 1 and named[0][0] in title_text:
        # The only line is what the title names.
        parts = [title_text + named[0][1]]
    else:
        parts = [title_text, "; ".join(label + n for label, n in named)]
    parts += [_capitalised(part) for part in plain(below).replace("\n", " ").split(" · ") if part]
    if not_finite := hatched(figure.data):
        parts.append(f"Hatched where values are not finite: {not_finite}")
    parts += results
    return " ".join(f"{part.rstrip('.')}." for part in parts if part)


def _legend_entries(series: Sequence[DrawnSeries]) -> list[tuple[str, str]]:
    """The legend entries of the lines, each once, and of groups the number of seeds, such as ` (n = 4)`."""
    members: dict[str, list[DrawnSeries]] = {}
    for drawn in series:
        if drawn.kind == "line" and drawn.x:
            members.setdefault(drawn.label, []).append(drawn)
    return [_with_n(label, alike) for label, alike in members.items()]


def _with_n(label: str, alike: Sequence[DrawnSeries]) -> tuple[str, str]:
    if "group" not in alike[0].meta:
        return label, ""
    label = re.sub(r" \(n = \d+\)$", "", label)
    known = [
        int(n)
        for drawn in alike
        for n, y in zip(drawn.n, drawn.y, strict=False)
        if isinstance(n, float) and n > 0 and y is not None
    ]
    least, most = (min(known), max(known)) if known else (len(alike), len(alike))
    return label, f" (n = {most})" if least == most else f" (n = {least} to {most})"


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
