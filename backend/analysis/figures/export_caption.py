"""The caption of an exported figure: what is drawn, of how many runs, and how groups differ."""

import re
from collections.abc import Sequence

from backend.analysis.comparisons.schemas import Comparison, EstimateOut, Improvement
from backend.analysis.figures.export_series import DrawnSeries, drawn_series, plain
from backend.analysis.figures.figure import Figure
from backend.analysis.figures.gaps import hatched
from backend.analysis.figures.theme import MINUS

MAX_PAIRS = 6
"""Groups that are compared with the best one."""


def caption(figure: Figure, comparison: Comparison | None = None) -> str:
    """The figure's title, its series with their numbers of seeds, how they are drawn, and how they differ.

    Args:
        figure: any, with a title and a subtitle.
        comparison: comparison of the groups that the figure shows; None for none.

    Raises:
        Invalid: the figure has a trace that cannot be exported.
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
    if comparison is not None:
        parts += _tests(comparison)
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
    label = re.sub(r", \d+ seeds?$", "", label)
    known = [
        int(n)
        for drawn in alike
        for n, y in zip(drawn.n, drawn.y, strict=False)
        if isinstance(n, float) and n > 0 and y is not None
    ]
    least, most = (min(known), max(known)) if known else (len(alike), len(alike))
    return label, f" (n = {most})" if least == most else f" (n = {least} to {most})"


def _tests(comparison: Comparison) -> list[str]:
    """How the group with the highest interquartile mean differs from the other groups, in sentences."""
    names = {group.id: group for group in comparison.groups}
    pairs = [pair for pair in comparison.improvements if pair.a == comparison.improvements[0].a]
    if not pairs:
        return []
    best = names[pairs[0].a]
    at = "at the last step of each run" if best.at_agent_steps is None else f"at {best.at_agent_steps:,}"
    if best.at_agent_steps is not None:
        at += " iterations" if best.step_unit == "iterations" else " agent steps"
    scores = (
        "mean of the last 100 training returns" if comparison.score == "training" else "latest evaluation"
    )
    results = [f"against {names[pair.b].name} {_result(pair)}" for pair in pairs[:MAX_PAIRS]]
    further = [f"and {len(pairs) - MAX_PAIRS} more"] if len(pairs) > MAX_PAIRS else []
    n = len(comparison.improvements)
    holm = f", p-values by Holm’s method for {n} comparisons" if n > 1 else ""
    return [
        f"Scores ({scores}) {at}: {best.name} {', '.join(results + further)}",
        f"{comparison.method}{holm}",
    ]


def _result(pair: Improvement) -> str:
    p = "p < 0.001" if pair.p_adjusted < 0.001 else f"p = {pair.p_adjusted:.2g}"
    return f"{_estimate(pair.difference)} ({p})"


def _estimate(estimate: EstimateOut) -> str:
    if estimate.value is None:
        return "unknown"
    value = f"{estimate.value:+.3g}"
    if estimate.low is not None and estimate.high is not None:
        value += f" [{estimate.low:.3g}, {estimate.high:.3g}]"
    return value.replace("-", MINUS)


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
