"""The reducer of a figure's rule, and the runs of a figure reduced by it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from backend.drawing.catalogue import describe
from backend.experiments.figures.runs import FigureRuns
from backend.experiments.specs.study import ReductionRule
from backend.runs.runs.fields import setting_title
from backend.specs.environments import ENVIRONMENTS
from backend.statistics.cells import Cell, CellKey, Reduction, runs_in
from backend.statistics.members import MemberRun
from backend.statistics.reducers import (
    BestKept,
    BestOf,
    Last,
    MeanOfBest,
    MeanOfTopByMetric,
    Normalised,
    Peak,
    RatioTo,
    Reducer,
    Reference,
    TimeTo,
    TimeToPeak,
)

TARGETS = {"human": "human", "dqn": "DQN"}
"""Labels of published scores, by target."""


def reducer_of(
    rule: ReductionRule,
    protocols: Mapping[str, str],
    scores_of_arm: Mapping[str, float] | None = None,
    setting: str | None = None,
) -> Reducer:
    """The reducer of a rule.

    Args:
        rule: the rule.
        protocols: the evaluation protocol of each environment.
        scores_of_arm: scores of `rule.reference_arm`, by environment.
        setting: the setting whose best values a rule may choose.
    """
    reducer = _plain(rule, protocols, scores_of_arm or {}, setting)
    if rule.normalise is not None:
        references = references_of(rule.normalise, protocols)
        reducer = Normalised(reducer, references, target_name=TARGETS[rule.normalise])
    if rule.ratio_to is not None:
        reducer = RatioTo(rule.ratio_to, reducer, inverse=rule.inverse)
    return reducer


def _plain(
    rule: ReductionRule,
    protocols: Mapping[str, str],
    scores_of_arm: Mapping[str, float],
    setting: str | None,
) -> Reducer:
    k = rule.k or 1
    if rule.rule == "best_kept":
        return BestKept(rule.centre)
    if rule.rule == "best_of":
        return BestOf(k, rule.source)
    if rule.rule == "mean_of_best":
        if setting in (None, "config.learning_rate"):
            return MeanOfBest(k, rule.of, rule.source)
        title = setting_title(setting)
        return MeanOfBest(k, rule.of, rule.source, (f"value of {title}", f"values of {title}"))
    if rule.rule == "top":
        return MeanOfTopByMetric(k, rule.metric or "")
    if rule.rule == "time_to_peak":
        return TimeToPeak(rule.axis, rule.source)
    if rule.rule == "time_to":
        if rule.reference is not None:
            known = references_of(rule.reference, protocols)
            targets = {name: reference.target for name, reference in known.items()}
            return TimeTo(
                targets, rule.axis, rule.source, f"the published score of {TARGETS[rule.reference]}"
            )
        if rule.reference_arm is not None:
            return TimeTo(scores_of_arm, rule.axis, rule.source, f"the best score of {rule.reference_arm}")
        return TimeTo(rule.references, rule.axis, rule.source)
    return Last(rule.source, rule.centre)


def references_of(target: str, protocols: Mapping[str, str]) -> dict[str, Reference]:
    """Random play and the target of each environment that has both under its protocol."""
    references = {}
    for name, protocol in protocols.items():
        environment = ENVIRONMENTS.get(name)
        if environment is None:
            continue
        levels = {score.label: score.score for score in environment.published if score.protocol == protocol}
        if "random" in levels and TARGETS[target] in levels:
            references[name] = Reference(levels["random"], levels[TARGETS[target]])
    return references


def reduce_runs(runs: FigureRuns) -> Reduction:
    """The value of each arm on each environment; environments without the score of a reference arm are left
    out."""
    rule = runs.figure.reduction
    members, planned, scores = with_reference(runs)
    reducer = reducer_of(rule, runs.protocols, scores, runs.setting)
    reduction = reducer.reduce(members, planned)
    shown = set(runs.labels)
    cells = tuple(cell for cell in reduction.cells if cell.arm in shown)
    if rule.rule == "top" and rule.ratio_to is None:
        divisor = describe(rule.metric or "").divisor  # as charts of the metric: bytes are shown in MiB
        cells = tuple(
            replace(cell, value=None if cell.value is None else cell.value / divisor) for cell in cells
        )
    words = reduction.rule
    if len(cells) < len(reduction.cells):
        # The words name the number of runs if it is the same in all cells; a hidden arm may have another.
        plain, prefix = (reducer.of, f"{reducer.prefix}: ") if isinstance(reducer, RatioTo) else (reducer, "")
        of_shown = plain.reduce(
            [member for member in members if member.arm in shown],
            {key: n for key, n in planned.items() if key[0] in shown},
        )
        words = f"{prefix}{of_shown.rule}"
    caption = f"{words}; {runs_in(*count_runs(runs, cells))}"
    return replace(reduction, cells=cells, rule=words, caption=caption)


def with_reference(runs: FigureRuns) -> tuple[list[MemberRun], dict[CellKey, int], dict[str, float]]:
    """The runs and their planned numbers on environments where the rule's reference arm has a score, and
    these scores; all runs if the rule has no such arm."""
    rule = runs.figure.reduction
    if rule.reference_arm is None:
        return runs.members, runs.planned, {}
    peaks = Peak(rule.source).reduce(runs.members, runs.planned)
    scores = {
        cell.environment: cell.value
        for cell in peaks.cells
        if cell.arm == rule.reference_arm and cell.value is not None
    }
    members = [member for member in runs.members if member.environment in scores]
    planned = {key: n for key, n in runs.planned.items() if key[1] in scores}
    return members, planned, scores


def count_runs(runs: FigureRuns, cells: Sequence[Cell]) -> tuple[int, int]:
    """How many runs the shown cells have, and how many are planned."""
    # An environment without the score of the reference arm has no cell yet.
    has_reference_arm = runs.figure.reduction.reference_arm is not None
    planned = runs.n_planned if has_reference_arm else sum(cell.planned for cell in cells)
    return sum(cell.n for cell in cells), planned
