"""A study's runs reduced to one of its figures: the data of the database, the rule, and the drawing.

Scores come from finished runs alone: any other was cut short. Curves also have the runs that still train.
"""

import math
from collections import OrderedDict, defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_UP, Context
from threading import Lock
from typing import Any

import numpy as np
from sqlalchemy.orm import Session

from backend.analysis.figures import study as drawings
from backend.analysis.figures.figure import Figure
from backend.analysis.figures.palette import Theme
from backend.analysis.figures.study import ArmCurve, Bar, Frame, RunDot
from backend.analysis.metrics import repository as metrics
from backend.analysis.metrics.catalogue import EPISODE_RETURN, X_AXES, describe
from backend.analysis.metrics.charts import Axes
from backend.analysis.metrics.chunks import Array, Columns
from backend.analysis.metrics.grouping import Spread
from backend.analysis.metrics.seed_groups import group_curve
from backend.db import Series, Study
from backend.experiments.studies import expansion, repository, rules
from backend.experiments.studies.cells import CellRow
from backend.experiments.studies.highs import training_highs
from backend.experiments.studies.tables import Column, Table, TableCell, TableRow
from backend.platform.errors import NotFound
from backend.runs.runs.fields import setting_title
from backend.runs.starts import service as starts
from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS, Environment
from backend.specs.problems import quoted
from backend.specs.protocols import protocol_title, starts_protocol
from backend.specs.run import default_config
from backend.specs.study import MAX_CURVES, Arm, ReductionRule, StudyFigure, StudySpec
from backend.statistics.across import across_environments
from backend.statistics.cells import Cell, CellKey, Reduction, runs_in
from backend.statistics.members import MemberRun, Points, last_score
from backend.statistics.profiles import TARGET, profiles
from backend.statistics.reducers import Peak, RatioTo, TimeToPeak, normalise

MAX_RUNS_PER_CURVE = 20
"""Maximum number of runs whose mean a curve is: the first by draw, or the best if the rule selects."""
_MAX_SETS = 3
"""Start sets that a caption or a heading names."""
_TIMES = ((3600.0, "h"), (60.0, "min"), (1.0, "s"))
"""Units of times: seconds and symbol, the longest first."""
_EPOCH_FRAMES = 4_000_000.0
_POINTS = 200
_KEPT_GRIDS = 1_000
"""Some 10 kB each."""
_MAX_LISTED = 5
"""Environments that a sentence names with their values."""
_DIFFERENT_TIMES = 1.1
"""Factor from which on the training times of arms are said to differ."""
_SMOOTHED_SHARE = 1 / 25
"""Width of the moving mean of a curve, as a share of its length."""
_SPREAD = Spread.chosen("mean", "se")
_MISSING = object()
_TARGETS = {"human": "Human", "dqn": "DQN"}
_SECTIONS = ("config", "environment_config")

_X: dict[str, tuple[str, float, str]] = {
    "agent_steps": ("agent_steps", 1.0, X_AXES["agent_steps"].axis),
    "frames": ("frames", 1.0, X_AXES["frames"].axis),
    "wall_time_s": ("wall_time_s", 1.0, X_AXES["wall_time_s"].axis),
    "hours": ("wall_time_s", 3600.0, "Training time (h)"),
    "epochs": ("frames", _EPOCH_FRAMES, "Epochs of 4 million frames"),
}
"""By horizontal axis of curves: the column, its divisor and the title."""


@dataclass(frozen=True)
class StudyDrawing:
    """A figure or a table of a study, with what it says."""

    spec: StudyFigure
    figure: Figure | None
    table: Table | None
    caption: str
    """The rule in words, and how many runs are in."""
    finding: str
    """What it shows so far, in words; empty without any score."""
    n_in: int
    n_planned: int

    @property
    def text(self) -> str:
        """The caption and the finding as sentences, for a file of the figure."""
        return " ".join(filter(None, (f"{self.caption[:1].upper()}{self.caption[1:]}.", self.finding)))


@dataclass
class _Data:
    """The cells of a study, and what reducers need of their runs."""

    spec: StudySpec
    environments: Mapping[str, Environment]
    """By id, those that are known here."""
    cells: list[CellRow]
    protocols: dict[str, str]
    """By environment, the evaluation protocol of the first arm that is shown. In figures with published
    scores `rules.differing_protocols` ensures that the other arms have the same."""
    settings: dict[int, dict[str, Any]]
    """Settings that were drawn for each cell, by its number and their paths."""
    shown_arms: tuple[str, ...] = ()
    """Labels of the arms that are shown; empty for all."""
    setting: str | None = None
    """The setting by which runs are grouped or placed."""
    planned: dict[CellKey, int] = field(default_factory=dict)
    members: list[MemberRun] = field(default_factory=list)
    by_draw: dict[tuple[str, str, int], CellRow] = field(default_factory=dict)
    """Cells by arm, environment and draw."""

    @property
    def arms(self) -> list[Arm]:
        """The arms that are shown."""
        return [arm for arm in self.spec.arms if not self.shown_arms or arm.label in self.shown_arms]

    @property
    def shown_members(self) -> list[MemberRun]:
        """The members of the arms that are shown; a reference arm need not be one."""
        shown = {arm.label for arm in self.arms}
        return [member for member in self.members if member.arm in shown]

    @property
    def n_planned(self) -> int:
        """Runs of the arms that are shown."""
        shown = {arm.label for arm in self.arms}
        return sum(n for (arm, _), n in self.planned.items() if arm in shown)

    def title(self, environment: str) -> str:
        """The environment's name on figures."""
        known = ENVIRONMENTS.get(environment)
        return known.title if known else environment


def build_figure(
    session: Session, study: Study, spec: StudySpec, figure_id: str, *, theme: Theme, width_px: int | None
) -> StudyDrawing:
    """Build one figure of a study.

    Raises:
        NotFound: the study has no such figure.
    """
    figure = next((figure for figure in spec.figures if figure.id == figure_id), None)
    if figure is None:
        known = ", ".join(figure.id for figure in spec.figures)
        raise NotFound(f"the study has no figure {quoted(figure_id)}; it has {known}")
    data = _load(session, study, spec, figure)
    drawing = _build_figure(session, data, figure, theme, width_px)
    beside = _beside_others(session, data) if figure.compares_times else ""
    captions = filter(None, [drawing.caption, beside, *_captions_of_starts(session, study, spec)])
    return replace(drawing, caption="; ".join(captions))


def _beside_others(session: Session, data: _Data) -> str:
    """How many of the finished runs trained beside others, in words; empty if none did."""
    run_ids = [cell.run_id for cell in data.cells if cell.counts and cell.run_id]
    n = len(repository.trained_beside_others(session, run_ids))
    return f"{n} of {len(run_ids)} finished runs trained beside others on their host" if n else ""


def _captions_of_starts(session: Session, study: Study, spec: StudySpec) -> Iterator[str]:
    """What the start sets of the evaluations hold, each in words; of many the first ones."""
    environments = expansion.environments_of(study)
    protocols = [
        protocol
        for protocol in dict.fromkeys(
            protocol
            for at in range(len(spec.arms))
            for protocol in expansion.protocols_of(spec, at, environments).values()
        )
        if starts_protocol(protocol)
    ]
    for protocol in protocols[:_MAX_SETS]:
        yield f"{protocol_title(protocol)}: {starts.caption_of(session, protocol) or 'not here any more'}"
    if len(protocols) > _MAX_SETS:
        yield f"and {len(protocols) - _MAX_SETS} more start sets"


def _build_figure(
    session: Session, data: _Data, figure: StudyFigure, theme: Theme, width_px: int | None
) -> StudyDrawing:
    """Build one figure, with what its runs and its rule say in its caption."""
    frame = Frame(figure.title, [arm.label for arm in data.arms], theme, width_px)
    panels = [data.title(environment) for environment in data.spec.environments]
    if figure.kind == "counts":
        return _counts_over_time(session, data, figure, frame)
    if figure.kind in ("bars", "stacked_bars") or (figure.kind == "table" and figure.metrics):
        return _metrics(session, data, figure, frame, panels)
    if figure.kind == "speedups":
        return _speedups(data, figure)
    if figure.kind in ("profile", "optimality_gap"):
        return _profiles(data, figure, frame)
    reduction = _reduce(data, figure.reduction)
    n_in, n_planned = _count_runs(data, figure.reduction, reduction.cells)
    finding = _finding(data, reduction)
    caption = reduction.caption
    if figure.kind in ("scatter", "sorted"):
        score = "last evaluation" if figure.reduction.source == "evaluations" else "last training score"
        caption = f"{score} of each run; {runs_in(n_in, n_planned)}"
    drawing: Figure | None = None
    table: Table | None = None
    if figure.kind == "curves":
        drawing, in_words = _curves(session, data, figure, reduction, frame, panels)
        rule = reduction.rule
        if figure.metrics and figure.reduction.rule == "last":
            rule, finding = f"mean of {describe(figure.metrics[0]).axis}", ""
        elif figure.x == "hours":
            finding = " ".join(filter(None, [finding, _times_finding(data)]))
        caption = "; ".join([rule, *in_words, runs_in(n_in, n_planned)])
    elif figure.kind == "scatter":
        drawing, finding = _scatter(data, figure, frame, panels)
    elif figure.kind == "sorted":
        drawing, left_out = _sorted(data, figure, frame, panels)
        caption = "; ".join([caption, *left_out])
    elif figure.kind == "games":
        bars = [_bar(data, cell) for cell in reduction.cells]
        reference = 100.0 if reduction.unit == "%" else None
        drawing = drawings.games_figure(bars, x=_unit_title(reduction), reference=reference, frame=frame)
    elif figure.kind == "reached":
        drawing, finding = _reached(data, figure.reduction, reduction, frame)
    else:
        table = _table(data, figure, reduction)
    return StudyDrawing(figure, drawing, table, caption, finding, n_in, n_planned)


def _load(session: Session, study: Study, spec: StudySpec, figure: StudyFigure) -> _Data:
    """The cells of the arms that the figure shows or compares with, and the finished runs among them."""
    rule = figure.reduction
    labels = [arm.label for arm in spec.arms]
    needed = (
        {*figure.arms, *filter(None, (rule.reference_arm, rule.ratio_to))} if figure.arms else set(labels)
    )
    cells = [cell for cell in repository.cells(session, study.id) if labels[cell.arm] in needed]
    first = next((at for at, arm in enumerate(spec.arms) if rules.is_shown(figure, arm)), 0)
    environments = expansion.environments_of(study)
    data = _Data(
        spec,
        environments,
        cells,
        expansion.protocols_of(spec, first, environments),
        {},
        figure.arms,
        setting=rules.setting_of(figure, spec),
    )
    for environment in spec.environments:
        for label in labels:
            if label not in needed:
                continue
            data.planned[label, environment] = 0
    for cell in cells:
        data.planned[labels[cell.arm], cell.environment] += 1
        data.by_draw[labels[cell.arm], cell.environment, cell.draw] = cell
    path = data.setting
    if path is not None:
        data.settings = repository.settings(session, study.id)
    done = [cell for cell in cells if cell.counts]
    needs_evaluations = rule.source == "evaluations" or rule.rule == "best_kept"
    evaluations = repository.evaluations(session, study.id) if needs_evaluations else {}
    kept = repository.best_kept(session, study.id) if rule.rule == "best_kept" else {}
    needs_curves = rule.source == "training" and rule.rule in ("time_to", "time_to_peak")
    versions = {cell.run_id: cell.revision for cell in done if cell.run_id} if needs_curves else {}
    highs = training_highs(session, versions)
    values = repository.metric_means(session, study.id, [rule.metric]) if rule.metric else {}
    for cell in done:
        run_id = cell.run_id or ""
        score = cell.score
        last = Points()
        if score is not None and np.isfinite(score):  # one point: it is already the mean of 100 returns
            last = Points(
                np.array([cell.agent_steps], float), np.array([cell.wall_time_s]), np.array([score])
            )
        setting = None if path is None else _setting(data, cell, path)
        data.members.append(
            MemberRun(
                arm=labels[cell.arm],
                environment=cell.environment,
                draw=cell.draw,
                points=Points() if needs_curves else last,
                evaluations=(*evaluations.get(run_id, ()), *kept.get(run_id, ())),
                setting=float(setting) if isinstance(setting, int | float) else None,
                metrics=values.get(run_id, {}),
                training=highs.get(run_id),
            )
        )
    return data


def _setting(data: _Data, cell: CellRow, path: str) -> Any:
    """The value of a setting in a cell's run: sampled, of its arm, or the default."""
    sampled = data.settings.get(cell.number, {})
    if path in sampled:
        return sampled[path]
    return _setting_of_arm(data, data.spec.arms[cell.arm], cell.environment, path)


def _setting_of_arm(data: _Data, arm: Arm, environment: str, path: str) -> Any:
    """The value of a setting of an arm on an environment; None if it has none."""
    section, _, name = path.partition(".")
    given = getattr(arm, section, {}).get(name, _MISSING) if section in _SECTIONS else None
    if given is not _MISSING:
        return given
    algorithm, known = ALGORITHMS.get(arm.algorithm), data.environments.get(environment)
    if algorithm is None or known is None:
        return None
    if section == "config":
        return default_config(algorithm, known).get(name)
    return known.config().model_dump(mode="json").get(name)


def _reduce(data: _Data, rule: ReductionRule) -> Reduction:
    """The value of each arm on each environment; environments without the score of a reference arm are left
    out."""
    members, planned, scores = _with_reference(data, rule)
    reducer = rules.reducer_of(rule, data.protocols, scores, data.setting)
    reduction = reducer.reduce(members, planned)
    shown = {arm.label for arm in data.arms}
    cells = tuple(cell for cell in reduction.cells if cell.arm in shown)
    if rule.rule == "top" and rule.ratio_to is None:
        divisor = describe(rule.metric or "").divisor  # as charts of the metric: bytes are shown in MiB
        cells = tuple(
            replace(cell, value=None if cell.value is None else cell.value / divisor) for cell in cells
        )
    in_words = reduction.rule
    if len(cells) < len(reduction.cells):
        # The words name the number of runs if it is the same in all cells; a hidden arm may have another.
        plain, prefix = (reducer.of, f"{reducer.prefix}: ") if isinstance(reducer, RatioTo) else (reducer, "")
        of_shown = plain.reduce(
            [member for member in members if member.arm in shown],
            {key: n for key, n in planned.items() if key[0] in shown},
        )
        in_words = f"{prefix}{of_shown.rule}"
    caption = f"{in_words}; {runs_in(*_count_runs(data, rule, cells))}"
    return replace(reduction, cells=cells, rule=in_words, caption=caption)


def _with_reference(
    data: _Data, rule: ReductionRule
) -> tuple[list[MemberRun], dict[CellKey, int], dict[str, float]]:
    """The runs and their planned numbers on environments where the rule's reference arm has a score, and
    these scores; all runs if the rule has no such arm."""
    if rule.reference_arm is None:
        return data.members, data.planned, {}
    of_arm = Peak(rule.source).reduce(data.members, data.planned)
    scores = {
        cell.environment: cell.value
        for cell in of_arm.cells
        if cell.arm == rule.reference_arm and cell.value is not None
    }
    members = [member for member in data.members if member.environment in scores]
    planned = {key: n for key, n in data.planned.items() if key[1] in scores}
    return members, planned, scores


def _count_runs(data: _Data, rule: ReductionRule, cells: Sequence[Cell]) -> tuple[int, int]:
    """How many runs the shown cells have, and how many are planned."""
    # An environment without the score of the reference arm has no cell yet.
    planned = data.n_planned if rule.reference_arm is not None else sum(cell.planned for cell in cells)
    return sum(cell.n for cell in cells), planned


def _curves(
    session: Session,
    data: _Data,
    figure: StudyFigure,
    reduction: Reduction,
    frame: Frame,
    panels: Sequence[str],
) -> tuple[Figure, list[str]]:
    """Each arm's mean curve over the runs that its value is made of, or over its first runs, those that train
    or were stopped included; and what is drawn of them, in words."""
    metric = figure.metrics[0] if figure.metrics else EPISODE_RETURN
    column, divisor, x_title = _X[figure.x]
    selects = figure.reduction.rule in ("best_of", "mean_of_best", "top")
    in_words = [f"lines: means over {100 * _SMOOTHED_SHARE:g} % of the axis, band {_SPREAD.band}"]
    chosen: dict[CellKey, list[CellRow]] = {}
    for cell in reduction.cells[:MAX_CURVES]:
        if selects:
            draws: Sequence[int] = cell.members
        else:
            draws = range(data.spec.draws.n)
        places = [(cell.arm, cell.environment, draw) for draw in draws]
        rows = [data.by_draw[place] for place in places if place in data.by_draw]
        known = [row for row in rows if row.run_id and row.agent_steps > 0 and not row.is_changed]
        chosen[cell.arm, cell.environment] = known
    if any(len(of_cell) > MAX_RUNS_PER_CURVE for of_cell in chosen.values()):
        in_words.append(f"each curve is of the {'best' if selects else 'first'} {MAX_RUNS_PER_CURVE} runs")
    chosen = {key: of_cell[:MAX_RUNS_PER_CURVE] for key, of_cell in chosen.items()}
    run_ids = [cell.run_id for curve_cells in chosen.values() for cell in curve_cells if cell.run_id]
    by_run: dict[str, Series] = {}
    for series in metrics.list_series(session, run_ids, [metric]):
        if series.n_points and not series.source:
            by_run[series.run_id] = series
    furthest = max(
        (float(getattr(cell, column)) for curve_cells in chosen.values() for cell in curve_cells), default=0.0
    )
    if figure.x == "hours":
        divisor, x_title = _time_axis(furthest)
    axes = Axes(column, _POINTS, smoothing="window", scale=max(1e-9, furthest * _SMOOTHED_SHARE))
    curves = []
    unit = describe(metric).divisor
    for (arm, environment), curve_cells in chosen.items():
        reached = {cell.run_id: float(getattr(cell, column)) for cell in curve_cells if cell.run_id in by_run}
        members = [by_run[run_id] for run_id in reached if run_id is not None]
        if not members:
            continue
        grid = _known_grids.read(session, members, axes, tuple(reached.values()))
        shown = np.isfinite(grid["mean"])
        curves.append(
            ArmCurve(
                arm=arm,
                panel=data.title(environment),
                x=grid["x"][shown] / divisor,
                mean=grid["mean"][shown] / unit,
                low=grid["low"][shown] / unit,
                high=grid["high"][shown] / unit,
                n=grid["n"][shown],
                n_runs=len(members),
            )
        )
    if any(not curve.is_whole.all() for curve in curves):
        in_words.append("thin where not all runs have a value")
    n_unfinished = sum(
        not cell.counts for curve_cells in chosen.values() for cell in curve_cells if cell.run_id in by_run
    )
    if n_unfinished:
        in_words.append(f"with {n_unfinished} unfinished run{'s' if n_unfinished > 1 else ''}")
    in_words += _cut_in_words(len(reduction.cells))
    drawing = drawings.curves_figure(curves, panels=panels, x=x_title, y=describe(metric).axis, frame=frame)
    return drawing, in_words


def _times_finding(data: _Data) -> str:
    """How long finished runs of the fastest and of the slowest arm trained on average, where that differs."""
    times: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    shown = {arm.label for arm in data.arms}
    for (arm, environment, _), cell in data.by_draw.items():
        if cell.counts and arm in shown:
            times[environment][arm].append(cell.wall_time_s)
    sentences = []
    for environment in data.spec.environments:
        means = {arm: float(np.mean(of_arm)) for arm, of_arm in times[environment].items()}
        fastest, slowest = (min(means.values()), max(means.values())) if means else (0.0, 0.0)
        if slowest > _DIFFERENT_TIMES * fastest:
            seconds, unit = _time_unit(slowest)
            arm_of = {mean: arm for arm, mean in means.items()}
            ends = [f"{in_tables(end / seconds)} {unit} ({arm_of[end]})" for end in (fastest, slowest)]
            sentences.append(f"{data.title(environment)}: a run took on average from {ends[0]} to {ends[1]}.")
    return " ".join(sentences)


def _cut_in_words(n_curves: int) -> list[str]:
    """Which curves are drawn, in words; empty if all are."""
    return [f"the first {MAX_CURVES} of {n_curves:,} curves are drawn"] if n_curves > MAX_CURVES else []


def _time_axis(longest_s: float) -> tuple[float, str]:
    """Seconds in the unit of an axis of training times, and its title: the longest unit that the longest time
    fills."""
    seconds, unit = _time_unit(longest_s)
    return seconds, f"Training time ({unit})"


def _time_unit(longest_s: float) -> tuple[float, str]:
    return next((known for known in _TIMES if longest_s >= known[0]), _TIMES[-1])


class _KnownGrids:
    """Mean curves of the latest requests: those of finished runs never change."""

    def __init__(self) -> None:
        self._grids: OrderedDict[Hashable, Columns] = OrderedDict()
        self._lock = Lock()

    def read(
        self, session: Session, members: Sequence[Series], axes: Axes, reached: tuple[float, ...]
    ) -> Columns:
        """The mean curve of some series, whose runs have come to these places."""
        versions = tuple((row.run_id, row.id, row.revision, row.n_points) for row in members)
        key = axes, versions, reached
        with self._lock:
            grid = self._grids.get(key)
            if grid is not None:
                self._grids.move_to_end(key)
                return grid
        grid = group_curve(session, members, axes, _SPREAD).grid
        with self._lock:
            self._grids[key] = grid
            while len(self._grids) > _KEPT_GRIDS:
                self._grids.popitem(last=False)
        return grid


_known_grids = _KnownGrids()


def _scatter(data: _Data, figure: StudyFigure, frame: Frame, panels: Sequence[str]) -> tuple[Figure, str]:
    path = figure.setting or ""
    dots = []
    for member in data.shown_members:
        cell = data.by_draw[member.arm, member.environment, member.draw]
        value, score = _setting(data, cell, path), _score(member, figure.reduction)
        if value is None or score is None:
            continue
        x = value if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
        name = f"{member.arm}, draw {member.draw}"
        dots.append(RunDot(member.arm, data.title(member.environment), name, x, score))
    drawing = drawings.dots_figure(
        dots, panels=panels, x=setting_title(path), y="Score", log=figure.log, frame=frame
    )
    sentences = []
    for panel in panels:
        panel_dots = [dot for dot in dots if dot.panel == panel]
        if panel_dots:
            best = max(panel_dots, key=lambda dot: dot.y)
            lowest = min(dot.y for dot in panel_dots)
            half = (best.y + lowest) / 2
            n = sum(dot.y >= half for dot in panel_dots)
            where = f"{best.x:.3g}" if isinstance(best.x, int | float) else best.x
            sentences.append(
                f"{panel}: highest score {in_tables(best.y)} at {where}; {n} of {len(panel_dots)} runs in "
                f"the upper half of the range of scores."
            )
    return drawing, " ".join(sentences)


def _score(member: MemberRun, rule: ReductionRule) -> float | None:
    """The score of one run at the end of its training."""
    return last_score(member, rule.source)


def _sorted(
    data: _Data, figure: StudyFigure, frame: Frame, panels: Sequence[str]
) -> tuple[Figure, list[str]]:
    """The scores of each arm's runs in order, a curve each; and what is left out, in words."""
    scores: dict[tuple[str, str], list[float]] = defaultdict(list)
    for member in data.shown_members:
        score = _score(member, figure.reduction)
        if score is not None:
            scores[member.arm, data.title(member.environment)].append(score)
    drawn = dict(list(scores.items())[:MAX_CURVES])
    drawing = drawings.sorted_figure(drawn, panels=panels, y="Score", frame=frame)
    return drawing, _cut_in_words(len(scores))


def _reached(data: _Data, rule: ReductionRule, reduction: Reduction, frame: Frame) -> tuple[Figure, str]:
    """On how many environments each arm reached a score, over its whole training; and where, in words."""
    known = [
        (cell.arm, value) for cell in reduction.cells if (value := _finite_or_none(cell.value)) is not None
    ]
    is_time = reduction.unit == "s"
    places = [
        cell.wall_time_s if is_time else float(cell.agent_steps)
        for (arm, _, _), cell in data.by_draw.items()
        if cell.counts and arm in frame.arms
    ]
    furthest = max([*places, *(value for _, value in known)], default=0.0)
    divisor, x, unit = 1.0, "Agent steps", "agent steps"
    if is_time:
        (divisor, x), (_, unit) = _time_axis(furthest), _time_unit(furthest)
    reached = {arm: [value / divisor for of, value in known if of == arm] for arm in frame.arms}
    n = len({cell.environment for cell in reduction.cells})
    drawing = drawings.reached_figure(
        reached, n_environments=n, furthest=furthest / divisor, x=x, unit=unit, frame=frame
    )
    said = []
    for arm, times in reached.items():
        where = [
            f"{data.title(cell.environment)} after {in_tables((cell.value or 0.0) / divisor)} {unit}"
            for cell in reduction.cells
            if cell.arm == arm and _finite_or_none(cell.value) is not None
        ]
        listed = f": {', '.join(where)}" if 0 < len(where) <= _MAX_LISTED else ""
        said.append(f"{arm} reached it on {len(times)} of {n} environments{listed}")
    if not any(cell.n for cell in reduction.cells):
        return drawing, ""
    _, _, scores = _with_reference(data, rule)
    if (reference := rule.reference_arm) is not None and 0 < len(scores) <= _MAX_LISTED:
        time_to_peak = TimeToPeak("wall_time_s" if is_time else "agent_steps", rule.source)
        peaks = time_to_peak.reduce(data.members, data.planned)
        where = []
        own_times = [peaks.value(reference, name) for name in scores]
        for (name, score), at in zip(scores.items(), own_times, strict=True):
            after = "" if at is None else f" after {in_tables(at / divisor)} {unit}"
            where.append(f"{data.title(name)} {in_tables(score)}{after}")
        own = "" if own_times == [None] * len(own_times) else " (mean) and when its runs had theirs (median)"
        said.append(f"best scores of {reference}{own}: {', '.join(where)}")
    return drawing, "; ".join(said) + "."


def _profiles(data: _Data, figure: StudyFigure, frame: Frame) -> StudyDrawing:
    """The performance profiles or optimality gaps of the arms over environments."""
    rule = figure.reduction
    target = rule.normalise or "human"
    references = rules.references_of(target, data.protocols)
    scores: dict[tuple[str, str], list[float]] = defaultdict(list)
    for member in data.shown_members:
        reference = references.get(member.environment)
        if reference is None:
            continue
        value = normalise(_score(member, rule), reference)
        if value is not None:
            scores[member.arm, member.environment].append(value)
    across = profiles(scores, frame.arms)
    if figure.kind == "profile":
        x = f"{_TARGETS[target]}-normalised score (%)"
        drawing = drawings.profile_figure(across.arms, x=x, target=TARGET, frame=frame)
    else:
        drawing = drawings.gaps_figure(across.arms, frame=frame)
    n_in, n_planned = sum(profile.n_runs for profile in across.arms), data.n_planned
    source = "last evaluations" if rule.source == "evaluations" else "last training scores"
    caption = (
        f"{rules.LABELS[target]}-normalised {source} of the runs, each environment with the same weight, "
        f"over the same {len(across.environments)} of {len(data.spec.environments)} environments; "
        f"{n_in} of {n_planned} runs are in"
    )
    said = [f"{profile.arm} {profile.optimality_gap:.3g} %" for profile in across.arms]
    finding = f"Optimality gap: {', '.join(said)}." if said else ""
    return StudyDrawing(figure, drawing, None, caption, finding, n_in, n_planned)


def _bar(data: _Data, cell: Cell, part: str = "") -> Bar:
    value = cell.value if cell.value is not None and np.isfinite(cell.value) else None
    return Bar(cell.arm, data.title(cell.environment), value, cell.arm, part, cell.n, cell.low, cell.high)


def _metrics(
    session: Session, data: _Data, figure: StudyFigure, frame: Frame, panels: Sequence[str]
) -> StudyDrawing:
    """The means of metrics over the runs of each arm: bars or a table."""
    study_cells = [cell for cell in data.cells if cell.run_id and not cell.is_changed]
    values = repository.metric_means_of_runs(
        session, [cell.run_id for cell in study_cells if cell.run_id], figure.metrics
    )
    bars: list[Bar] = []
    n_in = 0
    labels = [arm.label for arm in data.spec.arms]
    arm_of: dict[tuple[str, str], str] = {}
    for environment in data.spec.environments:
        for number, arm in enumerate(data.spec.arms):
            if arm not in data.arms:
                continue
            run_means = [
                values.get(cell.run_id or "", {})
                for cell in study_cells
                if (cell.arm, cell.environment) == (number, environment)
            ]
            x = _setting_of_arm(data, arm, environment, figure.setting) if figure.setting else None
            category = labels[number] if x is None else _category(x, arm, data.spec)
            of_category = arm_of.setdefault((environment, category), labels[number])
            if of_category != labels[number]:  # equal settings: a bar would stand on another arm's
                category = f"{category} {labels[number]}"
            n_in += sum(bool(means) for means in run_means)
            for metric in figure.metrics:
                known = [means[metric] for means in run_means if metric in means]
                bars.append(
                    Bar(
                        arm.label,
                        data.title(environment),
                        float(np.mean(known)) / describe(metric).divisor if known else None,
                        category,
                        describe(metric).title,
                        len(known),
                    )
                )
    parts = [describe(metric).title for metric in figure.metrics]
    axis = ", ".join(dict.fromkeys(describe(metric).axis for metric in figure.metrics))
    n_planned = data.n_planned
    caption = f"mean of each run's mean; {n_in} of {n_planned} runs are in"
    finding = _bars_finding(bars, parts, panels)
    if figure.kind == "table":
        table = _metric_table(bars, figure.metrics, data)
        return StudyDrawing(figure, None, table, caption, finding, n_in, n_planned)
    x_title = setting_title(figure.setting) if figure.setting else ""
    drawing = drawings.bars_figure(
        bars,
        panels=panels,
        parts=parts,
        x=x_title,
        y=axis,
        stacked=figure.kind == "stacked_bars",
        frame=frame,
    )
    return StudyDrawing(figure, drawing, None, caption, finding, n_in, n_planned)


def _category(value: Any, arm: Arm, spec: StudySpec) -> str:
    """A setting as a category; with the network, if arms differ in it."""
    text = f"{value:g}" if isinstance(value, int | float) else str(value)
    networks = {str(other.config.get("network", "")) for other in spec.arms}
    own = str(arm.config.get("network", ""))
    return f"{text} {own}" if len(networks) > 1 and own else text


def _bars_finding(bars: Sequence[Bar], parts: Sequence[str], panels: Sequence[str]) -> str:
    sentences = []
    for panel in panels:
        for part in parts[:2]:
            known = [bar for bar in bars if (bar.panel, bar.part) == (panel, part) and bar.value is not None]
            if len(known) > 1:
                best = max(known, key=lambda bar: bar.value or 0.0)
                least = min(known, key=lambda bar: bar.value or 0.0)
                sentences.append(
                    f"{panel}, {part}: from {in_tables(least.value)} ({least.arm}) to "
                    f"{in_tables(best.value)} ({best.arm})."
                )
    return " ".join(sentences)


def _metric_table(bars: Sequence[Bar], names: Sequence[str], data: _Data) -> Table:
    shown = [describe(name) for name in names]
    parts = [about.title for about in shown]
    columns = [Column("Method", "", "name")]
    columns += [Column(about.title, f"{about.axis}, mean over runs", "ours") for about in shown]
    rows = []
    several = len(data.spec.environments) > 1
    for environment in data.spec.environments:
        for arm in data.arms:
            by_part = {
                bar.part: bar for bar in bars if (bar.arm, bar.panel) == (arm.label, data.title(environment))
            }
            cells = [
                TableCell(
                    by_part[part].value, n=by_part[part].n, planned=data.planned[arm.label, environment]
                )
                for part in parts
            ]
            label = f"{arm.label}, {data.title(environment)}" if several else arm.label
            rows.append(TableRow(label, cells))
    return Table(columns, rows, [])


def _table(data: _Data, figure: StudyFigure, reduction: Reduction) -> Table:
    """Environments as rows; each arm and each published score as a column."""
    columns = [Column("Environment", "", "name")]
    source = figure.reduction.source
    is_trained = source == "training" and figure.reduction.rule != "best_kept"
    for at, arm in enumerate(data.spec.arms):
        if arm in data.arms:
            protocols = expansion.protocols_of(data.spec, at, data.environments).values()
            how = "last 100 training episodes" if is_trained else _heading(protocols)
            # `top` is of a metric, not of scores.
            title = reduction.rule if figure.reduction.rule == "top" else f"{how}; {reduction.rule}"
            columns.append(Column(arm.label, title, "ours", unit=reduction.unit))
    published = _published(data, figure.published)
    target = figure.reduction.normalise
    by, unit = ("", "") if target is None else (f"{rules.LABELS[target]}-normalised here; ", reduction.unit)
    columns += [
        Column(label, f"{protocol_title(protocol)}; {by}{where}", "published", unit=unit)
        for label, protocol, where in published
    ]
    by_place = {(cell.arm, cell.environment): cell for cell in reduction.cells}
    rows = []
    for environment in data.spec.environments:
        cells = []
        for arm in data.arms:
            cell = by_place.get((arm.label, environment))
            cells.append(
                TableCell(None)
                if cell is None
                else TableCell(_finite_or_none(cell.value), cell.low, cell.high, cell.n, cell.planned)
            )
        scores = ENVIRONMENTS[environment].published if environment in ENVIRONMENTS else ()
        for label, protocol, _ in published:
            printed = [score.score for score in scores if (score.label, score.protocol) == (label, protocol)]
            value = printed[0] if printed else None
            if target is not None:  # by references of its own protocol
                known = rules.references_of(target, {environment: protocol})
                value = normalise(value, known[environment]) if environment in known else None
            cells.append(TableCell(value))
        rows.append(TableRow(data.title(environment), cells))
    foot = []
    if len(data.spec.environments) > 1 and reduction.unit != "score":  # raw scores have no common scale
        across = across_environments(reduction)
        for name in ("mean", "median", "iqm"):
            values = {summary.arm: getattr(summary, name) for summary in across}
            n = len(across[0].environments) if across else 0
            cells = [TableCell(values.get(arm.label)) for arm in data.arms]
            cells += [TableCell(None) for _ in published]
            title = {"mean": "Mean", "median": "Median", "iqm": "IQM"}[name]
            foot.append(TableRow(f"{title} over {n} environments", cells))
    return Table(columns, rows, foot)


def _finite_or_none(value: float | None) -> float | None:
    return value if value is not None and np.isfinite(value) else None


def _heading(protocols: Collection[str]) -> str:
    """Protocols in words; of many start sets without their names."""
    titles = {protocol_title(protocol) for protocol in protocols}
    if len(titles) > _MAX_SETS:
        parsed = {protocol: starts_protocol(protocol) for protocol in protocols}
        titles = {
            protocol_title(name if starts_of is None else starts_of.base)
            for name, starts_of in parsed.items()
        }
    return ", ".join(sorted(titles))


def _published(data: _Data, labels: Sequence[str]) -> list[tuple[str, str, str]]:
    """Label, protocol and source of the published columns that some environment has."""
    sources: dict[tuple[str, str], str] = {}
    for named in labels:
        label, _, protocol = named.partition("@")
        for environment in data.spec.environments:
            known = ENVIRONMENTS.get(environment)
            for score in known.published if known else ():
                if score.label == label and protocol in ("", score.protocol):
                    sources.setdefault((label, score.protocol), score.source)
    return [(label, protocol, source) for (label, protocol), source in sources.items()]


def _speedups(data: _Data, figure: StudyFigure) -> StudyDrawing:
    """The speed-up of each arm over the first one of its algorithm, for each environment and as their mean.

    The mean is over the environments where it is known so far of all arms of the algorithm that have one, so
    that the arms can be compared. A sentence gives it for the last arm of each algorithm, such as the one
    with the most actor-learners.
    """
    rule = figure.reduction
    with_score, planned_with_score, scores = _with_reference(data, rule)
    plain_rule = rule.model_copy(update={"ratio_to": None})
    plain = rules.reducer_of(plain_rule, data.protocols, scores, data.setting)
    by_algorithm: dict[str, list[str]] = defaultdict(list)
    for arm in data.arms:
        by_algorithm[arm.algorithm].append(arm.label)
    columns = [
        Column("Method", "", "name"),
        *(
            Column(data.title(environment), "speed-up", "ours", unit="×")
            for environment in data.spec.environments
        ),
        Column("Mean", "over environments", "ours", unit="×"),
    ]
    rows, sentences, n_in, n_planned = [], [], 0, 0
    caption = ""
    for labels in by_algorithm.values():
        members = [member for member in with_score if member.arm in labels]
        planned = {key: n for key, n in planned_with_score.items() if key[0] in labels}
        reducer = RatioTo(labels[0], plain, inverse=rule.rule in ("time_to", "time_to_peak"))
        reduction = reducer.reduce(members, planned)
        n_in += sum(cell.n for cell in reduction.cells)
        n_planned += sum(cell.planned for cell in reduction.cells)
        of_kind = replace(reducer, arm="the first of its kind").prefix
        caption = caption or f"{of_kind}{reduction.rule.removeprefix(reducer.prefix)}"
        by_place = {(cell.arm, cell.environment): cell for cell in reduction.cells}
        common, means = mean_speedups(reduction)
        for label in labels:
            of_label = [by_place.get((label, environment)) for environment in data.spec.environments]
            cells = [
                TableCell(None, n=0, planned=data.planned[label, environment])
                if cell is None
                else TableCell(cell.value, n=cell.n, planned=cell.planned)
                for environment, cell in zip(data.spec.environments, of_label, strict=True)
            ]
            rows.append(TableRow(label, [*cells, TableCell(means.get(label))]))
        mean = means.get(labels[-1])
        if mean is not None:
            n = len(data.spec.environments)
            over = f" over {len(common)} of {n} environments" if len(common) < n else ""
            sentences.append(f"{labels[-1]}: {mean:.2g}×{over}.")
        elif by_place and all(cell.n for cell in by_place.values()):
            is_of_times = rule.rule in ("time_to", "time_to_peak")
            why = "not every run reached the reference" if is_of_times else "a value is missing or 0"
            sentences.append(f"{labels[-1]}: no speed-up, since {why}.")
    if rule.reference_arm is not None:  # an environment without its score has no cell yet
        n_planned = data.n_planned
    caption = f"{caption}; {n_in} of {n_planned} runs are in"
    return StudyDrawing(figure, None, Table(columns, rows, []), caption, " ".join(sentences), n_in, n_planned)


def mean_speedups(reduction: Reduction) -> tuple[set[str], dict[str, float]]:
    """The environments where all arms that have a value have one, and the mean of each arm over these."""
    by_arm: dict[str, dict[str, float]] = defaultdict(dict)
    for cell in reduction.cells:
        if cell.value is not None:
            by_arm[cell.arm][cell.environment] = cell.value
    common = set.intersection(*map(set, by_arm.values())) if by_arm else set[str]()
    if not common:
        return common, {}
    means = {arm: float(np.mean([values[name] for name in common])) for arm, values in by_arm.items()}
    return common, means


def _counts_over_time(session: Session, data: _Data, figure: StudyFigure, frame: Frame) -> StudyDrawing:
    """Counts, such as that of actors, of the first run that has them over training time."""
    lines: list[tuple[str, str, Any, Any]] = []
    cells = [cell for cell in data.cells if data.spec.arms[cell.arm] in data.arms]
    run_ids = [cell.run_id for cell in cells if cell.run_id and not cell.is_changed]
    by_run: dict[str, dict[str, Series]] = defaultdict(dict)
    for row in metrics.list_series(session, run_ids, figure.metrics):
        if row.n_points and not row.source:
            by_run[row.run_id][row.metric] = row
    by_metric = next((by_run[run_id] for run_id in run_ids if run_id in by_run), {})
    chunks = metrics.live_chunks(session, [row.id for row in by_metric.values()])
    for metric in figure.metrics:
        if metric not in by_metric:
            continue
        of_metric = chunks[by_metric[metric].id]
        read = metrics.points_of(session, of_metric, ("wall_time_s", "value"))
        times = np.concatenate([read[chunk.id]["wall_time_s"] for chunk in of_metric])
        values = np.concatenate([read[chunk.id]["value"] for chunk in of_metric])
        about = describe(metric)
        lines.append((metric, about.title, times, values / about.divisor))
    drawing = drawings.counts_figure(
        lines,
        x=X_AXES["wall_time_s"].axis,
        second=describe(figure.metrics[-1]).axis,
        frame=frame,
    )
    finding = ""
    if lines:
        finding = "; ".join(f"{title} {range_in_words(values)}" for _, title, _, values in lines) + "."
    return StudyDrawing(figure, drawing, None, "the first run", finding, min(1, len(lines)), len(cells))


def range_in_words(values: Array) -> str:
    """The least and the largest of the values that are finite, and the last value."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return in_tables(values[-1])
    least, largest, last = (in_tables(value) for value in (finite.min(), finite.max(), values[-1]))
    if least == largest:
        return last if last == least else f"{least}, {last} at the end"
    return f"between {least} and {largest}, {last} at the end"


def _unit_title(reduction: Reduction) -> str:
    return {"score": "Score", "%": "Normalised score (%)", "s": "Training time (s)", "ratio": "Ratio"}.get(
        reduction.unit, describe(reduction.unit).axis
    )


def in_tables(value: float | None) -> str:
    """A value as the tables of pages write it: whole numbers in full, others with four significant digits and
    from a thousand on with six, halves rounded up; below 0.001 and from 1e9 on in scientific notation. Signs
    are minus signs, not hyphens.
    """
    number = float(value or 0.0)
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "∞" if number > 0 else "−∞"
    size = abs(number)
    if size != 0 and not 1e-3 <= size < 1e9:
        digits, _, exponent = f"{size:.3e}".partition("e")
        text = f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}".replace("-", "−")
    elif number.is_integer():
        text = f"{size:,.0f}"
    else:  # of the decimal digits: 44.985 is stored as slightly less
        rounded = Context(prec=6 if size >= 1000 else 4, rounding=ROUND_HALF_UP).create_decimal(repr(size))
        text = f"{float(rounded):,.10g}"
    return f"−{text}" if number < 0 else text


def _finding(data: _Data, reduction: Reduction) -> str:
    """Which arm has the highest and the lowest value on each environment."""
    unit = {"%": " %", "s": " s", "ratio": "×"}.get(reduction.unit, "")
    sentences = []
    for environment in data.spec.environments:
        known = [
            cell
            for cell in reduction.cells
            if cell.environment == environment and cell.value is not None and np.isfinite(cell.value)
        ]
        if not known:
            continue
        best = max(known, key=lambda cell: cell.value or 0.0)
        text = f"{data.title(environment)}: {best.arm} with {in_tables(best.value)}{unit}"
        if len(known) > 1:
            least = min(known, key=lambda cell: cell.value or 0.0)
            word = "fastest" if reduction.unit in ("s", "agent steps") else "highest"
            other = "slowest" if word == "fastest" else "lowest"
            if word == "fastest":
                best, least = least, best
            text = (
                f"{data.title(environment)}: {word} {best.arm} with {in_tables(best.value)}{unit}, {other} "
                f"{least.arm} with {in_tables(least.value)}{unit}"
            )
        sentences.append(f"{text}.")
    return " ".join(sentences)
