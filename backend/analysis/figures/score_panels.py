"""Scores of the configs of a comparison: bars, strips, heat maps, and which setting matters.

Every number of a config is that of `comparisons.compare`: it depends on its own runs, and on the length at
which all are compared.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from sqlalchemy.orm import Session

from backend.analysis.comparisons import service as comparisons
from backend.analysis.comparisons.schemas import At, Comparison, GroupStatistics, LeftOut, RunScore
from backend.analysis.comparisons.schemas import Score as ComparedScore
from backend.analysis.comparisons.verdicts import rank, scores_of
from backend.analysis.figures.scatter import has_changed, setting_field, setting_value
from backend.analysis.metrics import service as metrics
from backend.db import Run
from backend.drawing.figure import Figure, FigureOptions
from backend.drawing.palette import IN_ORDER, WantedStyles, distinct_styles
from backend.drawing.score_panels import (
    ConfigScores,
    HeatCell,
    Plate,
    SeedDot,
    ShareBar,
    bars_of_configs,
    heat_map,
    importance_figure,
    strips_of_configs,
    strips_over_setting,
)
from backend.platform.errors import Invalid
from backend.runs.runs import listing
from backend.runs.runs.fields import ConfigField, RunField, setting_title
from backend.runs.runs.groups import configs_of, group_key, json_number
from backend.runs.runs.names import names_of_groups, subject, value_texts
from backend.specs.problems import quoted
from backend.statistics.estimates import interquartile_mean
from backend.statistics.importance import TooFewRuns, importance

ScoreKind = Literal["bars", "strips", "heatmap", "importance"]

_SCORES: dict[ComparedScore, str] = {
    "training": "Score (mean of the last 100 returns)",
    "evaluation": "Score (latest evaluation)",
}
_LEFT_OUT: dict[LeftOut, str] = {
    "repeated": "repeats another run",
    "broke_off": "failed, was lost or was stopped before",
    "early": "scores of the first, short episodes",
}
_TITLES: dict[ScoreKind, str] = {
    "bars": "Scores by config",
    "strips": "Scores of seeds",
    "heatmap": "Scores",
    "importance": "Which setting matters",
}


@dataclass(frozen=True)
class ScoresRequest:
    """A figure of the scores of some runs."""

    runs: Sequence[str]
    kind: ScoreKind
    options: FigureOptions
    score: ComparedScore = "training"
    at: At = "common"
    protocol: str | None = None
    environment: str | None = None
    """Only runs of it are drawn, in the styles of all."""
    setting: str | None = None
    other_setting: str | None = None
    styles: WantedStyles = IN_ORDER


@dataclass(frozen=True)
class SettingShare:
    """What a setting, combinations of settings or the seed explains of the variance of scores."""

    settings: list[str]
    title: str
    share: float
    kind: Literal["setting", "combinations", "seed"]


@dataclass(frozen=True)
class DrawnScorePanel:
    """The requested figure."""

    figure: Figure
    n_runs: int
    """Number of runs whose scores count."""
    n_left_out: int
    """Number of runs with a score that does not."""
    notes: list[str] = field(default_factory=list)
    shares: list[SettingShare] = field(default_factory=list)


def draw_scores(session: Session, request: ScoresRequest) -> DrawnScorePanel:
    """A figure of the scores of the configs of some runs.

    Raises:
        NotFound: there is no such run.
        Invalid: there is no such setting, one is missing, or the runs are of several environments.
    """
    if request.kind == "heatmap":
        for name in ("setting", "other_setting"):
            if getattr(request, name) is None:
                raise Invalid.field(name, "a heat map is over two settings: name it")
        if request.setting == request.other_setting:
            raise Invalid.field("other_setting", "a heat map is over two different settings")
    runs_by_id = metrics.find_runs(session, request.runs)
    panel = _Panel(session, request, runs_by_id)
    draw: dict[ScoreKind, Callable[[], Figure]] = {
        "bars": panel.bars,
        "strips": panel.strips,
        "heatmap": panel.heat_map,
        "importance": panel.importance,
    }
    figure = draw[request.kind]()
    return DrawnScorePanel(figure, panel.n_runs, panel.n_left_out, panel.notes, panel.shares)


class _Panel:
    """One request's figure."""

    def __init__(self, session: Session, request: ScoresRequest, runs_by_id: Mapping[str, Run]) -> None:
        self._session, self._request = session, request
        self._runs = self._of_environment(runs_by_id)
        firsts: dict[str, Run] = {}
        for run in runs_by_id.values():
            firsts.setdefault(group_key(run), run)
        self._styles = distinct_styles(firsts, request.styles.of_groups)
        self._names = dict(zip(firsts, names_of_groups(list(firsts.values())).names, strict=True))
        self._comparison: Comparison = comparisons.compare(
            session, list(self._runs), request.score, request.at, None, request.protocol
        )
        self._groups = sorted(self._comparison.groups, key=rank)
        scores = [run for group in self._groups for run in group.runs if run.score is not None]
        self.n_runs = sum(run.counted for run in scores)
        self.n_left_out = len(scores) - self.n_runs
        self.notes: list[str] = []
        self.shares: list[SettingShare] = []
        if n_broken := sum(group.n_broken_off > 0 for group in self._groups):
            self.notes.append(
                f"{n_broken} of {len(self._groups)} configs with runs that did not finish, placed last"
            )
        self._note_left_out(scores)

    def _of_environment(self, runs_by_id: Mapping[str, Run]) -> dict[str, Run]:
        """The runs of the one environment.

        Raises:
            Invalid: there are several, and none is chosen.
        """
        chosen = self._request.environment
        environments = list(dict.fromkeys(run.environment for run in runs_by_id.values()))
        if chosen is None and len(environments) > 1:
            named = ", ".join(quoted(name) for name in environments[:5])
            raise Invalid.field(
                "environment",
                f"the runs are of {len(environments)} environments, whose scores cannot be compared: "
                f"choose one of {named}",
            )
        if chosen is not None and chosen not in environments:
            raise Invalid.field("environment", f"no run is of {quoted(chosen)}")
        return {id_: run for id_, run in runs_by_id.items() if chosen in (None, run.environment)}

    def _note_left_out(self, scores: Sequence[RunScore]) -> None:
        for reason, words in _LEFT_OUT.items():
            if n := sum(run.left_out == reason for run in scores):
                self.notes.append(f"{n} run{'s' if n != 1 else ''} left out: {words}")

    @property
    def _plate(self) -> Plate:
        request, lengths = self._request, self._comparison.lengths
        ends = {(length.at_agent_steps, self._unit) for length in lengths if length.at_agent_steps}
        at = ["each run at its end"] if request.at == "end" else []
        at += [f"at {steps:,} {unit}" for steps, unit in sorted(ends)]
        drawn = {
            "bars": ["median over seeds", "whiskers: 95 % interval, from 5 seeds on"],
            "importance": ["main effects, functional ANOVA"],
        }
        parts = [_SCORES[request.score], *drawn.get(request.kind, []), *at, *self.notes]
        return Plate(
            title=f"{_TITLES[request.kind]}, {subject(self._runs.values())}",
            subtitle=" · ".join(parts),
            score=_SCORES[request.score],
            theme=request.options.theme,
            width_px=request.options.width_px,
            in_panel=request.options.in_panel,
        )

    @property
    def _unit(self) -> str:
        units = {group.step_unit for group in self._groups}
        return "iterations" if units == {"iterations"} else "agent steps"

    def bars(self) -> Figure:
        """The median score of each config."""
        return bars_of_configs([self._config(group) for group in self._groups], self._plate)

    def strips(self) -> Figure:
        """The scores of the seeds of each config, or over a setting."""
        if self._request.setting is None:
            return strips_of_configs([self._config(group) for group in self._groups], self._plate)
        setting = self._field("setting")
        configs = []
        for group in self._groups:
            values = {run.run: setting_value(self._runs[run.run], setting) for run in group.runs}
            configs.append(self._config(group, {run: _place(value) for run, value in values.items()}))
        configs = [
            config
            for config in configs
            if not any(has_changed(self._runs[seed.run], setting) for seed in config.seeds)
        ]
        return strips_over_setting(configs, setting_title(setting.name), self._plate)

    def heat_map(self) -> Figure:
        """The scores over two settings: of each cell the interquartile mean of the runs that count."""
        x, y = self._field("setting"), self._field("other_setting")
        cells: dict[tuple[str, str], list[GroupStatistics]] = {}
        values: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        for group in self._groups:
            first = self._runs[group.runs[0].run]
            place = [_identity(setting_value(first, setting)) for setting in (x, y)]
            if has_changed(first, x) or has_changed(first, y) or not group.n or "null" in place:
                continue
            for known, key in zip(values, place, strict=True):
                known[key] = json.loads(key)
            cells.setdefault((place[0], place[1]), []).append(group)
        texts = [self._in_order(known) for known in values]
        drawn = []
        for (at_x, at_y), groups in cells.items():
            scores = np.concatenate([scores_of(group) for group in groups])
            mean = interquartile_mean(scores)
            drawn.append(HeatCell(texts[0][at_x], texts[1][at_y], mean, _seeds_in_words(groups)))
        if any(len(groups) > 1 for groups in cells.values()):
            self.notes.append("cells of several configs have the interquartile mean over all their seeds")
        return heat_map(
            drawn,
            list(texts[0].values()),
            list(texts[1].values()),
            setting_title(x.name),
            setting_title(y.name),
            self._plate,
        )

    def importance(self) -> Figure:
        """Which setting explains how much of the variance of the scores."""
        counted = [
            (group, run)
            for group in self._groups
            for run in group.runs
            if run.counted and run.score is not None and not self._runs[run.run].departures
        ]
        values: dict[str, list[Any]] = {}
        specs = [_settings(self._runs[run.run]) for _, run in counted]
        for name in dict.fromkeys(name for spec in specs for name in spec):
            values[name] = [spec.get(name) for spec in specs]
        missing = ""
        shares: list[ShareBar] = []
        try:
            result = importance(
                np.array([run.score for _, run in counted], "f8"),
                [group.id for group, _ in counted],
                values,
            )
        except TooFewRuns as problem:
            missing = f"Too few runs: {problem}"
            self.notes.append(missing)
        else:
            self.shares = [
                SettingShare(list(names), " with ".join(map(setting_title, names)), share, "setting")
                for names, share in result.settings.items()
            ]
            if len(result.settings) > 1 or result.combinations > 0.005:
                self.shares.append(
                    SettingShare([], "Combinations of settings", result.combinations, "combinations")
                )
            self.shares.append(SettingShare([], "Seed", result.seed, "seed"))
            shares = [ShareBar(share.title, share.share, share.kind) for share in self.shares]
        return importance_figure(shares, missing, self._plate)

    def _field(self, parameter: Literal["setting", "other_setting"]) -> RunField | ConfigField:
        named = setting_field(getattr(self._request, parameter) or "", parameter)
        listing.check_known(self._session, parameter, named)
        return named

    def _config(
        self, group: GroupStatistics, places: Mapping[str, float | str | None] | None = None
    ) -> ConfigScores:
        name = self._names[group.id]
        if group.n_broken_off:
            name = f"{name} ({group.n_finished} of {group.n_finished + group.n_broken_off} finished)"
        return ConfigScores(
            id=group.id,
            name=name,
            style=self._styles[group.id],
            seeds=[
                SeedDot(
                    run.run,
                    f"seed {run.seed}" + (f", {_LEFT_OUT[run.left_out]}" if run.left_out else ""),
                    run.score,
                    run.counted,
                    (places or {}).get(run.run),
                )
                for run in group.runs
                if run.score is not None
            ],
            n=group.n,
            median=group.median.value if group.median else None,
            low=group.median.low if group.median else None,
            high=group.median.high if group.median else None,
            iqm=group.iqm.value if group.iqm else None,
            is_unfinished=group.n_broken_off > 0,
        )

    @staticmethod
    def _in_order(values: Mapping[str, Any]) -> dict[str, str]:
        """By key the text of each value of a setting: numbers ascending, then the others."""
        numeric = {
            key: value
            for key, value in values.items()
            if isinstance(value, int | float) and value is not True
        }
        ordered = sorted(values, key=lambda key: (key not in numeric, numeric.get(key, 0.0), key))
        return dict(zip(ordered, value_texts([values[key] for key in ordered]), strict=True))


def _place(value: Any) -> float | str | None:
    """A value of a setting on an axis. Plotly places nothing at a truth value."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    return value if isinstance(value, str) else json.dumps(value)


def _identity(value: Any) -> str:
    """Equal for values of a setting that are equal as JSON."""
    return json.dumps(json_number(value), sort_keys=True)


def _settings(run: Run) -> dict[str, Any]:
    """The settings of a run by path; numbers as numbers, others as text."""
    settings = {"algorithm": run.algorithm}
    for section, values in configs_of(run.spec).items():
        for name, value in values.items():
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            settings[f"{section}.{name}"] = json_number(value) if is_number else _identity(value)
    return settings


def _seeds_in_words(groups: Sequence[GroupStatistics]) -> str:
    n = sum(group.n for group in groups)
    n_broken = sum(group.n_broken_off for group in groups)
    n_finished = sum(group.n_finished for group in groups)
    seeds = f"n = {n}" if not n_broken else f"{n_finished} of {n_finished + n_broken} finished"
    return f"{seeds}, {len(groups)} configs" if len(groups) > 1 else seeds
