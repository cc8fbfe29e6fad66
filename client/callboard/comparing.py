"""Comparisons of groups of runs that differ in their seed alone: scores, tests and verdicts as data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from callboard.display import score_text, short


@dataclass(frozen=True)
class Estimate:
    """An estimate with its 95 % interval; `low` and `high` are None if there are too few runs for one."""

    value: float | None
    low: float | None
    high: float | None

    def __str__(self) -> str:
        """As on the page Compare: `12.5 [9.1, 15.0]`."""
        if self.low is None:
            return score_text(self.value)
        return f"{score_text(self.value)} [{score_text(self.low)}, {score_text(self.high)}]"


@dataclass(frozen=True)
class Group:
    """Runs of one configuration, which differ in their seed alone."""

    id: str
    name: str
    """What distinguishes it from the other groups of the comparison."""
    algorithm: str
    environment: str
    runs: tuple[str, ...]
    """Ids of its runs."""
    n: int
    """Number of its runs that count and have a score."""
    iqm: float | None
    """Interquartile mean of the scores."""
    median: Estimate
    data: dict[str, Any]
    """The group as the REST API describes it."""


@dataclass(frozen=True)
class Verdict:
    """Whether one of two groups has higher scores, by an exact permutation test."""

    a: Group
    """The group with the higher interquartile mean."""
    b: Group
    better: Group | None
    """The group with significantly higher scores: `p` is below 0.05; None if no difference is significant."""
    p: float
    """The test's p-value after Holm's correction for the number of verdicts."""
    p_uncorrected: float
    probability: float
    """Probability that a run of `a` scores higher than one of `b`; ties count half."""
    difference: Estimate
    """Median of all differences of a score of `a` and one of `b`."""
    seeds_needed: int | None
    """Runs of each group from which a difference could be significant; None if there are enough."""

    @property
    def is_decided(self) -> bool:
        """Whether there are enough runs for a difference to be significant."""
        return self.seeds_needed is None

    def __str__(self) -> str:
        """In words, as on the page Compare."""
        pair = f"{short(self.a.name)} and {short(self.b.name)}"
        if self.better is not None:
            worse = self.b if self.better is self.a else self.a
            pair = f"{short(self.better.name)} is better than {short(worse.name)}"
            return f"{pair}: p = {self.p:.3g}, {self._measured}"
        if self.is_decided:
            return f"{pair} do not differ significantly: p = {self.p:.3g}, {self._measured}"
        return f"{pair}: not decided; {self.seeds_needed} runs of each could be; {self._measured}"

    @property
    def _measured(self) -> str:
        return f"A - B = {self.difference}, P(A > B) = {self.probability:.2f}"


@dataclass(frozen=True)
class Comparison:
    """Groups of runs and verdicts on pairs of them."""

    groups: tuple[Group, ...]
    verdicts: tuple[Verdict, ...]
    """One for each pair with at least two scores each in one environment."""
    method: str
    """How intervals and p-values are computed."""
    data: dict[str, Any]
    """The comparison as the REST API describes it."""

    def __str__(self) -> str:
        """The groups, and the verdicts in words."""
        groups = [f"{short(group.name)}: n = {group.n}, median {group.median}" for group in self.groups]
        return "\n".join([*groups, *map(str, self.verdicts)])

    def group_of(self, run: str) -> Group:
        """The group of a run.

        Args:
            run: id of the run.

        Raises:
            KeyError: it is in no group.
        """
        for group in self.groups:
            if run in group.runs:
                return group
        raise KeyError(run)


def read_comparison(answer: dict[str, Any]) -> Comparison:
    """A comparison from the answer to `GET /comparisons`."""
    groups = {
        group["id"]: Group(
            id=group["id"],
            name=group["name"],
            algorithm=group["algorithm"],
            environment=group["environment"],
            runs=tuple(run["run"] for run in group["runs"]),
            n=group["n"],
            iqm=_estimate(group["iqm"]).value,
            median=_estimate(group["median"]),
            data=group,
        )
        for group in answer["groups"]
    }
    return Comparison(
        groups=tuple(groups.values()),
        verdicts=tuple(_verdicts(answer["improvements"], groups)),
        method=answer["method"],
        data=answer,
    )


def _verdicts(pairs: Iterable[dict[str, Any]], groups: dict[str, Group]) -> Iterable[Verdict]:
    for pair in pairs:
        yield Verdict(
            a=groups[pair["a"]],
            b=groups[pair["b"]],
            better=None if pair["better"] is None else groups[pair["better"]],
            p=pair["p_adjusted"],
            p_uncorrected=pair["p_value"],
            probability=pair["probability"]["value"],
            difference=_estimate(pair["difference"]),
            seeds_needed=pair["seeds_to_differ"],
        )


def _estimate(estimate: dict[str, Any] | None) -> Estimate:
    estimate = estimate or {}
    return Estimate(estimate.get("value"), estimate.get("low"), estimate.get("high"))
