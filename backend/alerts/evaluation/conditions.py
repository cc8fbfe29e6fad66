"""Whether what a rule watches for has happened to a run: pure functions of the rule and of what is known."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from backend.alerts.alerts.service import NewAlert
from backend.db import AlertRule


@dataclass(frozen=True)
class RunFacts:
    """What is known of a run that trains, or has just ended."""

    id: str
    name: str
    attempt: int
    agent_steps: int
    score: float | None
    is_early: bool
    """Whether the score is that of short episodes."""
    silent_s: float | None
    """How long it has had no points; None unless it is running."""
    not_finite: str | None = None
    """A metric that has a value which is not finite."""


@dataclass(frozen=True)
class Tail:
    """The latest points of a metric, in order."""

    agent_steps: Sequence[int]
    wall_time_s: Sequence[float]
    values: Sequence[float]


def held_s(tail: Tail, comparison: str, value: float) -> float | None:
    """For how much training time a metric has been above or below a value: from the first to the last of the
    latest points that all are; None if the last one is not."""
    since = None
    for time, point in zip(reversed(tail.wall_time_s), reversed(tail.values), strict=True):
        if not (point > value if comparison == "above" else point < value):  # NaN is neither
            break
        since = time
    return None if since is None else tail.wall_time_s[-1] - since


def met(rule: AlertRule, run: RunFacts, tail: Tail | None) -> Iterator[NewAlert]:
    """The alerts of a rule about a run, one for each of its conditions that is met.

    Args:
        rule: the rule.
        run: the run.
        tail: latest points of the rule's metric, of at least `rule.minutes`; None if it has none.
    """

    def alert(kind: str, what: str, metric: str | None = None, steps: int | None = None) -> NewAlert:
        return NewAlert(
            kind=kind,
            level="info" if kind == "score" else "warning",
            title=f"{run.name}: {what}",
            text="" if run.score is None else f"Score {run.score:.4g}.",
            subject_id=run.id,
            attempt=run.attempt,
            agent_steps=run.agent_steps if steps is None else steps,
            metric=metric,
        )

    for kind in rule.kinds:
        if kind == "no_points" and rule.minutes is not None and run.silent_s is not None:
            if run.silent_s >= rule.minutes * 60:
                yield alert(kind, f"no points for {rule.minutes:g} min")
        elif kind == "score" and rule.score is not None and run.score is not None:
            if run.score >= rule.score and not run.is_early:
                yield alert(kind, f"score {rule.score:g} reached")
        elif kind == "nan" and run.not_finite is not None:
            yield alert(kind, f"{run.not_finite} is not finite", run.not_finite)
        elif kind == "metric" and tail is not None and tail.values:
            assert rule.comparison is not None
            assert rule.value is not None
            assert rule.minutes is not None
            held = held_s(tail, rule.comparison, rule.value)
            if held is not None and held >= rule.minutes * 60:
                how_long = f" for {rule.minutes:g} min" if rule.minutes else ""
                what = f"{rule.metric} {rule.comparison} {rule.value:g}{how_long}"
                yield alert(kind, what, rule.metric, tail.agent_steps[-1])
