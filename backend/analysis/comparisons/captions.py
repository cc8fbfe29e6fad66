"""Results of a comparison in sentences, for the captions of figures."""

from backend.analysis.comparisons.schemas import Comparison, EstimateOut, Improvement
from backend.drawing.theme import MINUS

MAX_PAIRS = 6
"""Groups of which the difference from the baseline is stated."""


def results_in_words(comparison: Comparison) -> list[str]:
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
    n = comparison.n_comparisons
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
