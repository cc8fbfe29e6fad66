"""The caption of an exported figure: what is drawn, of how many runs, and how groups differ."""

import re
from collections.abc import Sequence

from backend.analysis.comparisons.schemas import Comparison, EstimateOut, Improvement
from backend.analysis.figures.export_series import DrawnSeries, drawn_series, plain
from backend.analysis.figures.figure import Figure
from backend.analysis.figures.gaps import hatched
from backend.analysis.figures.theme import MINUS

MAX_PAIRS = 6
"""Groups of which the difference from the baseline is stated."""


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
    """How the other groups differ from the first baseline, in sentences; with the runs that set the length,
    broke off or look chosen by score."""
    names = {group.id: group for group in comparison.groups}
    if not comparison.baselines:
        return []
    pairs = [pair for pair in comparison.improvements if comparison.baselines[0] in (pair.a, pair.b)]
    if not pairs:
        return []
    baseline = names[comparison.baselines[0]]
    at = "at the last step of each run"
    if baseline.at_agent_steps is not None:
        unit = "iterations" if baseline.step_unit == "iterations" else "agent steps"
        at = f"at {baseline.at_agent_steps:,} {unit}"
    scores = (
        "mean of the last 100 training returns" if comparison.score == "training" else "latest evaluation"
    )
    others = [pair.b if pair.a == baseline.id else pair.a for pair in pairs]
    results = [
        f"{names[other].name} {_result(pair, other)}"
        for other, pair in zip(others[:MAX_PAIRS], pairs, strict=False)
    ]
    further = [f"and {len(pairs) - MAX_PAIRS} more"] if len(pairs) > MAX_PAIRS else []
    n = len(comparison.improvements)
    holm = f", p-values by Holm’s method for {n} comparisons" if n > 1 else ""
    shown = [names[other] for other in (baseline.id, *others)]
    broken = [
        f"{group.name}: {group.n_finished} of {group.n_finished + group.n_broken_off} runs finished"
        for group in shown
        if group.n_broken_off
    ]
    best = [group.name for group in shown if group.are_best]
    return [
        f"Scores ({scores}) {at}, against {baseline.name}: {'; '.join(results + further)}",
        *(["; ".join(broken)] if broken else []),
        *([f"Chosen by score from more runs: {'; '.join(best)}"] if best else []),
        f"{comparison.method}{holm}",
    ]


def _result(pair: Improvement, other: str) -> str:
    """The difference of the other group from the baseline, and the p-value."""
    given = pair.difference
    difference = (
        given
        if other == pair.a
        else EstimateOut(value=_negative(given.value), low=_negative(given.high), high=_negative(given.low))
    )
    p = "p < 0.001" if pair.p_adjusted < 0.001 else f"p = {pair.p_adjusted:.2g}"
    if pair.seeds_to_differ is not None:
        p += f", not decided: significance is possible from {pair.seeds_to_differ} seeds a group"
    return f"{_estimate(difference)} ({p})"


def _negative(value: float | None) -> float | None:
    return None if value is None else -value


def _estimate(estimate: EstimateOut) -> str:
    if estimate.value is None:
        return "unknown"
    value = f"{estimate.value:+.3g}"
    if estimate.low is not None and estimate.high is not None:
        value += f" [{estimate.low:.3g}, {estimate.high:.3g}]"
    return value.replace("-", MINUS)


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
