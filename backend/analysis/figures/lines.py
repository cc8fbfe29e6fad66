"""Several metrics or formulas of runs, or of groups of seeds, in one chart."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from backend.analysis.figures.service import in_unit
from backend.analysis.figures.styles import run_styles
from backend.analysis.metrics import computed
from backend.analysis.metrics import service as metrics
from backend.analysis.metrics.axes import MAX_X, Axes, with_scales
from backend.analysis.metrics.charts import curves
from backend.analysis.metrics.formulas import Formula, FormulaProblem
from backend.analysis.metrics.seed_groups import GroupGrid, group_curve
from backend.db import Run, Series
from backend.drawing.catalogue import describe
from backend.drawing.curve import MANY, Band, CurveLine
from backend.drawing.figure import Figure, FigureOptions, Label
from backend.drawing.lines import LineText, Sheet, group_lines_figure, lines_figure, titles_of
from backend.drawing.palette import IN_ORDER, WantedStyles, distinct_styles
from backend.drawing.seed_curve import SeedGroup
from backend.drawing.theme import in_panel
from backend.platform.errors import Invalid
from backend.runs.runs.groups import group_key
from backend.runs.runs.names import names_of_groups, names_of_runs, subject
from backend.statistics.columns import Columns
from backend.statistics.grouping import Spread

MAX_LINES = 10
"""Metrics and formulas of a chart."""
MAX_SERIES = 256
"""Series of all runs that enter the formulas of a chart."""


@dataclass(frozen=True)
class LinesRequest:
    """A chart of several metrics or formulas of the same runs."""

    runs: Sequence[str]
    metrics: Sequence[str]
    formulas: Sequence[str]
    axes: Axes
    options: FigureOptions
    x_metric: str | None = None
    """The metric of the horizontal axis, in place of that of the axes."""
    spread: Spread | None = None
    """Of groups of seeds; None: each run is a line."""
    since: Sequence[int] = ()
    """The client's revisions: one for all runs, or one per run; empty for a client without the chart."""
    with_layout: bool = True
    styles: WantedStyles = IN_ORDER
    band: Band = "auto"
    environment: str | None = None
    """Only runs of it are drawn, in the styles of all."""


@dataclass(frozen=True)
class MissingLine:
    """A metric or formula that some runs have no values of."""

    line: str
    metrics: list[str]
    """Which of its metrics, that of the horizontal axis included, any of them lacks."""
    n_runs: int
    """Number of those runs."""
    is_empty: bool
    """Whether no run has a value of it."""


@dataclass(frozen=True)
class DrawnLines:
    """The requested chart."""

    figure: Figure
    revisions: list[int]
    missing: list[MissingLine]
    is_update: bool
    """Whether lines of metrics start where the client's end. Those of formulas are whole."""


def draw_lines(session: Session, request: LinesRequest) -> DrawnLines:
    """A chart of several metrics and formulas.

    Raises:
        NotFound: there is no such run.
        Invalid: a formula is none, or the chart would be too large.
    """
    formulas = _read_formulas(request)
    runs_by_id = metrics.find_runs(session, request.runs)
    axes = with_scales(session, request.axes, runs_by_id.values())
    since = metrics.revisions_had(request.since, request.runs, runs_by_id, request.axes, axes)
    revisions = [runs_by_id[run_id].revision for run_id in request.runs]
    chart = _Chart(session, replace(request, axes=axes), formulas, runs_by_id, since)
    is_same = since is not None and [since[run] for run in request.runs] == revisions
    figure = Figure()
    if not is_same or request.with_layout:
        with metrics.bounded(chart.n_lines, axes):
            figure = chart.draw()
    figure.scales = axes.scales
    return DrawnLines(figure, revisions, chart.missing(), is_update=chart.since is not None)


def _read_formulas(request: LinesRequest) -> list[Formula]:
    """The metrics and formulas, each once.

    Raises:
        Invalid: a formula is none, or there are none or too many.
    """
    formulas = [Formula.of_metric(name) for name in request.metrics]
    for number, text in enumerate(request.formulas):
        try:
            formula = Formula.parse(text)
        except FormulaProblem as problem:
            raise Invalid.field(f"formula.{number}", str(problem)) from None
        formulas.append(Formula.of_metric(formula.only_metric) if formula.only_metric else formula)
    different = list({formula.text: formula for formula in formulas}.values())
    if not different:
        raise Invalid.field("metric", "name at least one metric or formula")
    if len(different) > MAX_LINES:
        raise Invalid.field(
            "metric", f"{len(different)} metrics and formulas: one chart has at most {MAX_LINES}"
        )
    return different


class _Chart:
    """One request's chart."""

    def __init__(
        self,
        session: Session,
        request: LinesRequest,
        formulas: Sequence[Formula],
        runs_by_id: Mapping[str, Run],
        since: Mapping[str, int] | None,
    ) -> None:
        self._session, self._request, self._formulas, self._found = session, request, formulas, runs_by_id
        self._runs = {
            id_: run for id_, run in runs_by_id.items() if request.environment in (None, run.environment)
        }
        self._drawn = [LineText(formula.text, formula.only_metric is None) for formula in formulas]
        self._titles = dict(zip([formula.text for formula in formulas], titles_of(self._drawn), strict=True))
        across = [] if request.x_metric is None else [request.x_metric]
        names = list(dict.fromkeys([name for formula in formulas for name in formula.metrics] + across))
        self._chosen = metrics.on_one_axis(
            metrics.choose(session, self._runs, names, [], scored=True), request.axes.x
        )
        self._whole = {(row.run_id, row.metric): row for row in self._chosen if row.source == ""}
        has_gaps = any(row.n_finite < row.n_points for row in self._chosen)
        self._joins_bands = has_gaps or self.n_lines <= MANY
        if has_gaps and request.with_layout and not request.options.in_panel:
            since = None  # the layout counts what is not finite
        self.since = since
        if self.n_computed > MAX_SERIES:
            raise Invalid.field(
                "run",
                f"{self.n_computed} series enter the formulas: at most {MAX_SERIES} may; request fewer runs",
            )

    def _is_plain(self, formula: Formula) -> bool:
        """Whether it is drawn as any metric is."""
        return formula.only_metric is not None and self._request.x_metric is None

    def _lacks(self, formula: Formula, run_id: str) -> list[str]:
        """The metrics that a run lacks for a formula; all that count other steps than the first."""
        if self._is_plain(formula):
            has = any((row.run_id, row.metric) == (run_id, formula.text) for row in self._chosen)
            return [] if has else [formula.text]
        rows = {name: self._whole.get((run_id, name)) for name in self._needed(formula)}
        units = [row.step_unit for row in rows.values() if row is not None]
        return [name for name, row in rows.items() if row is None or row.step_unit != units[0]]

    def _needed(self, formula: Formula) -> list[str]:
        across = self._request.x_metric
        return list(dict.fromkeys([*formula.metrics, *([] if across is None else [across])]))

    @property
    def n_computed(self) -> int:
        """Number of series that enter formulas."""
        names = {
            name
            for formula in self._formulas
            if not self._is_plain(formula)
            for name in self._needed(formula)
        }
        return sum((run_id, name) in self._whole for run_id in self._runs for name in names)

    @property
    def n_lines(self) -> int:
        """About how many lines are drawn, at most."""
        n_plain = sum(
            row.metric in {f.text for f in self._formulas if self._is_plain(f)} for row in self._chosen
        )
        return n_plain + len(self._runs) * sum(not self._is_plain(formula) for formula in self._formulas)

    def missing(self) -> list[MissingLine]:
        """What some runs have no values of."""
        missing = []
        for formula in self._formulas:
            lacks = {run_id: names for run_id in self._runs if (names := self._lacks(formula, run_id))}
            if lacks:
                names = list(dict.fromkeys(name for lacking in lacks.values() for name in lacking))
                missing.append(MissingLine(formula.text, names, len(lacks), len(lacks) == len(self._runs)))
        return missing

    def draw(self) -> Figure:
        """The figure."""
        request = self._request
        x = request.axes.x
        if x == "agent_steps":
            x = metrics.axis_unit({row.step_unit for row in self._chosen}, x)
        of = ", ".join(self._titles.values())
        sheet = Sheet(
            drawn=self._drawn,
            x=x,
            x_metric=request.x_metric,
            title=f"{of}, {subject((self._runs or self._found).values())}",
            smooth=request.axes.description,
            empty=[missing.line for missing in self.missing() if missing.is_empty],
            theme=request.options.theme,
            width_px=request.options.width_px,
        )
        if request.spread is None:
            styles = run_styles(self._found, request.styles)
            figure = lines_figure(self._lines(), sheet, styles=styles, band=request.band)
        else:
            firsts: dict[str, Run] = {}
            for run in self._found.values():
                firsts.setdefault(group_key(run), run)
            styles = distinct_styles(firsts, request.styles.of_groups)
            groups = self._groups(firsts, request.spread)
            figure = group_lines_figure(groups, sheet, spread=request.spread, styles=styles)
        if request.options.in_panel:
            figure.layout = in_panel(figure.layout)
        elif request.axes.span is not None and request.axes.span[1] < MAX_X:
            figure.layout["xaxis"] |= {"range": list(request.axes.span), "rangemode": "normal"}
        if self.since is not None and not request.with_layout:
            figure.layout = {}
        return figure

    def _lines(self) -> list[CurveLine]:
        """The lines of runs, by run and then by metric."""
        names = dict(zip(self._found, names_of_runs(list(self._found.values())).names, strict=True))
        plain = {formula.text for formula in self._formulas if self._is_plain(formula)}
        rows = [row for row in self._chosen if row.metric in plain]
        read = curves(
            self._session,
            rows,
            self._request.axes,
            self.since,
            is_merged=True,
            has_joining_bucket=self._joins_bands,
            has_gaps=True,
        )
        lines = []
        for run_id in self._runs:
            of_run: dict[str, list[CurveLine]] = {}
            for row in rows:
                if row.run_id == run_id:
                    curve = read[row.id]
                    columns = in_unit(curve.buckets, row.metric) | {"x": curve.buckets[self._request.axes.x]}
                    label = self._label(names[run_id], row.metric, row.source)
                    of_run.setdefault(row.metric, []).append(
                        CurveLine(
                            run_id,
                            label,
                            row.metric,
                            row.source,
                            columns,
                            curve.n_rows,
                            curve.n_buckets,
                            start=None if curve.reset else curve.first_bucket,
                        )
                    )
            for rows_of_line, formula in self._computed([run_id], self._formulas):
                columns, n_rows = computed.reduce(rows_of_line, self._request.axes)
                label = self._label(names[run_id], formula.text, "")
                columns = self._in_units(columns, formula)
                of_run[formula.text] = [
                    CurveLine(run_id, label, formula.text, "", columns, n_rows, len(columns["x"]))
                ]
            lines += [line for formula in self._formulas for line in of_run.get(formula.text, [])]
        return lines

    def _computed(
        self, run_ids: Iterable[str], wanted: Sequence[Formula]
    ) -> list[tuple[computed.RunValues, Formula]]:
        """The values of those of the formulas that are computed, of the runs that have all their metrics."""
        computed_rows = []
        for run_id in run_ids:
            formulas = [
                formula
                for formula in wanted
                if not self._is_plain(formula) and not self._lacks(formula, run_id)
            ]
            names = dict.fromkeys(name for formula in formulas for name in self._needed(formula))
            rows = [self._whole[run_id, name] for name in names]
            read = computed.read_run(self._session, run_id, rows, self._request.axes.x)
            computed_rows += [
                (computed.evaluate(read, formula, self._request.x_metric), formula) for formula in formulas
            ]
        return computed_rows

    def _groups(self, firsts: Mapping[str, Run], spread: Spread) -> list[SeedGroup]:
        """The lines of groups, by group and then by metric."""
        names = dict(zip(firsts, names_of_groups(list(firsts.values())).names, strict=True))
        of_group: dict[str, list[SeedGroup]] = {key: [] for key in firsts}
        for formula in self._formulas:
            if self._is_plain(formula):
                rows: Sequence[Series] = [row for row in self._chosen if row.metric == formula.text]
            else:
                # Of each run that has all its metrics, the first of them stands for it.
                rows = [
                    self._whole[run_id, self._needed(formula)[0]]
                    for run_id in self._runs
                    if not self._lacks(formula, run_id)
                ]
            for members in metrics.seed_groups(self._session, rows, self._found):
                key = group_key(self._found[members[0].run_id])
                of_group[key].append(self._group(key, names[key], formula, members, spread))
        return [group for groups in of_group.values() for group in groups]

    def _group(
        self, key: str, name: str, formula: Formula, members: Sequence[Series], spread: Spread
    ) -> SeedGroup:
        runs = [row.run_id for row in members]
        source, divisor = "", describe(formula.only_metric).divisor if formula.only_metric else 1.0
        curve: GroupGrid
        if self._is_plain(formula):
            source = members[0].source
            curve = group_curve(self._session, members, self._request.axes, spread, self.since)
            columns = in_unit(curve.grid, formula.text)
        else:
            rows = [rows for rows, _ in self._computed(runs, [formula])]
            curve = computed.reduce_group(self._session, rows, self._request.axes, spread)
            columns = self._in_units(curve.grid, formula)
        label = self._label(name, formula.text, source)
        return SeedGroup(
            id=key,
            label=Label(label.name, label.detail, len(members)),
            runs=runs,
            metric=formula.text,
            source=source,
            columns=columns,
            seed_values=list(curve.seed_values / divisor),
            is_partial=curve.is_partial,
            not_finite=curve.not_finite,
            n_total=curve.n_rows,
            n_shown=curve.n_points,
            start=None if curve.reset else curve.first_bucket,
        )

    def _in_units(self, columns: Columns, formula: Formula) -> Columns:
        """Columns of a formula, or of a metric against another, in the units that figures draw these in."""
        if formula.only_metric is not None:
            columns = in_unit(columns, formula.only_metric)
        if self._request.x_metric is None:
            return columns
        divisor = describe(self._request.x_metric).divisor
        placed = {place: columns[place] / divisor for place in ("x", "window_x") if place in columns}
        return columns | placed

    def _label(self, name: str, text: str, source: str) -> Label:
        """The legend entry of a line: what its run or group is called, if there are several, and its metric,
        if there are several."""
        title = self._titles[text]
        of_line = f"{title}, {source}" if source else title
        if len(self._found) == 1:
            return Label(of_line)
        return Label(name, of_line if len(self._formulas) > 1 else source)
