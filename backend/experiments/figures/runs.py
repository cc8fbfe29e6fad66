"""The runs of a figure: the cells that it shows or compares with, and what reducers need of them.

Scores come from finished runs alone: any other was cut short. Curves also have the runs that still train.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sqlalchemy.orm import Session

from backend.db import Experiment
from backend.experiments.cells import repository
from backend.experiments.cells.protocols import environments_of, protocols_of
from backend.experiments.cells.rows import CellRow
from backend.experiments.figures.highs import training_highs
from backend.experiments.specs.study import Arm, StudyFigure, StudySpec
from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS, Environment
from backend.specs.run import default_config
from backend.statistics.cells import CellKey
from backend.statistics.members import MemberRun, Points

_MISSING = object()
_SECTIONS = ("config", "environment_config")


@dataclass
class FigureRuns:
    """The runs of a figure."""

    figure: StudyFigure
    spec: StudySpec
    environments: Mapping[str, Environment]
    """By id, those that are known here."""
    rows: list[CellRow]
    protocols: dict[str, str]
    """By environment, the evaluation protocol of the first arm that is shown. In figures with published
    scores `unfit.differing_protocols` ensures that the other arms have the same."""
    settings: dict[int, dict[str, Any]]
    """Settings that were drawn for each cell, by its number and their paths."""
    setting: str | None
    """The setting by which runs are grouped or placed."""
    planned: dict[CellKey, int] = field(default_factory=dict)
    members: list[MemberRun] = field(default_factory=list)
    by_draw: dict[tuple[str, str, int], CellRow] = field(default_factory=dict)
    """Rows by label of the arm, environment and draw."""

    @property
    def arms(self) -> list[Arm]:
        """The arms that are shown."""
        return [arm for arm in self.spec.arms if is_shown(self.figure, arm)]

    @property
    def labels(self) -> list[str]:
        """The labels of the arms that are shown."""
        return [arm.label for arm in self.arms]

    @property
    def panels(self) -> list[str]:
        """The names of the environments on figures."""
        return [self.title(environment) for environment in self.spec.environments]

    @property
    def shown_rows(self) -> list[CellRow]:
        """The cells of the arms that are shown."""
        return [row for row in self.rows if is_shown(self.figure, self.spec.arms[row.arm])]

    @property
    def shown_members(self) -> list[MemberRun]:
        """The members of the arms that are shown; a reference arm need not be one."""
        shown = set(self.labels)
        return [member for member in self.members if member.arm in shown]

    @property
    def n_planned(self) -> int:
        """Runs of the arms that are shown."""
        shown = set(self.labels)
        return sum(n for (label, _), n in self.planned.items() if label in shown)

    def title(self, environment: str) -> str:
        """The environment's name on figures."""
        known = ENVIRONMENTS.get(environment)
        return known.title if known else environment

    def setting_value(self, row: CellRow, path: str) -> Any:
        """The value of a setting in a cell's run: sampled, of its arm, or the default."""
        sampled = self.settings.get(row.number, {})
        if path in sampled:
            return sampled[path]
        return self.setting_of_arm(self.spec.arms[row.arm], row.environment, path)

    def setting_of_arm(self, arm: Arm, environment: str, path: str) -> Any:
        """The value of a setting of an arm on an environment; None if it has none."""
        section, _, name = path.partition(".")
        given = getattr(arm, section, {}).get(name, _MISSING) if section in _SECTIONS else None
        if given is not _MISSING:
            return given
        algorithm, known = ALGORITHMS.get(arm.algorithm), self.environments.get(environment)
        if algorithm is None or known is None:
            return None
        if section == "config":
            return default_config(algorithm, known).get(name)
        return known.config().model_dump(mode="json").get(name)


def is_shown(figure: StudyFigure, arm: Arm) -> bool:
    """Whether a figure shows an arm."""
    return not figure.arms or arm.label in figure.arms


def setting_of(figure: StudyFigure, spec: StudySpec) -> str | None:
    """The setting of a figure: by default the first that is drawn, in the papers' studies the rate."""
    return figure.setting or next(iter(spec.draws.space), None)


def load_runs(session: Session, study: Experiment, spec: StudySpec, figure: StudyFigure) -> FigureRuns:
    """The cells of the arms that the figure shows or compares with, and the finished runs among them."""
    rule = figure.reduction
    labels = [arm.label for arm in spec.arms]
    needed = (
        {*figure.arms, *filter(None, (rule.reference_arm, rule.ratio_to))} if figure.arms else set(labels)
    )
    rows = [row for row in repository.rows(session, study.id) if labels[row.arm] in needed]
    first = next((number for number, arm in enumerate(spec.arms) if is_shown(figure, arm)), 0)
    environments = environments_of(study)
    path = setting_of(figure, spec)
    runs = FigureRuns(
        figure,
        spec,
        environments,
        rows,
        protocols_of(spec, first, environments),
        {} if path is None else repository.settings(session, study.id),
        path,
    )
    for environment in spec.environments:
        runs.planned |= {(label, environment): 0 for label in labels if label in needed}
    for row in rows:
        runs.planned[labels[row.arm], row.environment] += 1
        runs.by_draw[labels[row.arm], row.environment, row.draw] = row
    runs.members = _members(session, study.id, runs, [row for row in rows if row.counts])
    return runs


def _members(session: Session, study_id: str, runs: FigureRuns, done: Sequence[CellRow]) -> list[MemberRun]:
    """The finished runs, with what the figure's rule needs of each."""
    rule = runs.figure.reduction
    needs_evaluations = rule.source == "evaluations" or rule.rule == "best_kept"
    evaluations = repository.evaluations(session, study_id) if needs_evaluations else {}
    kept = repository.best_kept(session, study_id) if rule.rule == "best_kept" else {}
    needs_curves = rule.source == "training" and rule.rule in ("time_to", "time_to_peak")
    versions = {row.run_id: row.revision for row in done if row.run_id} if needs_curves else {}
    highs = training_highs(session, versions)
    values = repository.metric_means(session, study_id, [rule.metric]) if rule.metric else {}
    members = []
    for row in done:
        run_id = row.run_id or ""
        setting = None if runs.setting is None else runs.setting_value(row, runs.setting)
        members.append(
            MemberRun(
                arm=runs.spec.arms[row.arm].label,
                environment=row.environment,
                draw=row.draw,
                points=Points() if needs_curves else _last_point(row),
                evaluations=(*evaluations.get(run_id, ()), *kept.get(run_id, ())),
                setting=float(setting) if isinstance(setting, int | float) else None,
                metrics=values.get(run_id, {}),
                training=highs.get(run_id),
            )
        )
    return members


def _last_point(row: CellRow) -> Points:
    """One point: the score is already the mean of 100 returns."""
    if row.score is None or not np.isfinite(row.score):
        return Points()
    return Points(np.array([row.agent_steps], float), np.array([row.wall_time_s]), np.array([row.score]))
