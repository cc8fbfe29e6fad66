"""What a page for others shows of runs: verdict, figures, scores, runs and commands."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from backend.analysis.comparisons import service as comparisons
from backend.analysis.comparisons.schemas import Comparison, EstimateOut, GroupStatistics, Improvement
from backend.analysis.figures import service as figures
from backend.analysis.figures.scatter import draw_scatter
from backend.analysis.figures.service import FigureKind, FigureName, FigureRequest
from backend.analysis.metrics.axes import Axes
from backend.analysis.shares import repository
from backend.analysis.shares.anonymous import Hiding, hide_names
from backend.analysis.shares.commands import command_lines
from backend.analysis.shares.page import Block, Chart, Code, Page, Section, Table
from backend.analysis.views.document import ScatterPanel, ViewDocument
from backend.db import Run
from backend.drawing.catalogue import EPISODE_RETURN
from backend.drawing.figure import Figure, FigureOptions
from backend.drawing.palette import Theme, WantedStyles
from backend.drawing.theme import MINUS
from backend.platform.errors import Invalid
from backend.runs.runs.groups import group_key, is_early
from backend.runs.runs.names import names_of_runs
from backend.specs.run_fields import EXTERNAL
from backend.specs.states import BROKEN_OFF
from backend.statistics.grouping import Spread

MAX_DRAWN = 6
"""As on pages: of more runs or groups, the best are drawn at first."""
MAX_CHARTS = 20
"""Each is drawn in two themes, and read for all runs."""
_THEMES: tuple[Theme, ...] = ("light", "dark")
_POINTS, _FEW_POINTS, _MAX_DETAILED = 500, 250, 10
_BOLD_PX = 3.5
_DASH = "–"


@dataclass(frozen=True)
class Shown:
    """What a page is of."""

    title: str
    runs: Sequence[str]
    """Ids; those of runs that do not exist are left out."""
    document: ViewDocument
    names: bool
    """Whether the page has the names of runs, groups and paths, and the notes."""
    at: datetime
    """When it is written."""


def page_of(session: Session, shown: Shown) -> Page | None:
    """The page; None if none of the runs exists.

    Without names, the session has rows with hidden names from here on: use it for nothing else.
    """
    runs = repository.existing_runs(session, shown.runs)
    if not runs:
        return None
    before = {run.id: group_key(run) for run in runs}
    hiding = None
    if not shown.names:
        hosts = repository.host_names(session, [run.id for run in runs])
        hiding = hide_names(runs, [*repository.user_names(session).values(), *hosts])
    return _Contents(session, shown, runs, before, hiding).page()


class _Contents:
    """One page in the making."""

    def __init__(
        self,
        session: Session,
        shown: Shown,
        runs: Sequence[Run],
        before: Mapping[str, str],
        hiding: Hiding | None,
    ) -> None:
        self._hiding = hiding
        self._session, self._shown, self._document, self._runs = session, shown, shown.document, runs
        self._groups = {run.id: group_key(run) for run in runs}
        self._renamed = {before[run_id]: group for run_id, group in self._groups.items()}
        """The ids of groups in the document, by which they are known here."""
        self._grouped = self._document.grouping == "seed"
        self._names = names_of_runs(runs)
        baseline = self._document.baseline
        self._baseline = None if baseline is None else self._renamed.get(baseline)
        everything = self._compare(runs)
        self._group_names = {group.id: group.name for group in everything.groups}
        """As in the charts, which have all groups: the verdict leaves out what is hidden."""
        self._hidden = self._hidden_series(everything)
        drawn = {self._groups[run.id] for run in runs if not self._is_hidden(run)}
        compared = [run for run in runs if self._groups[run.id] in drawn]
        is_all = not compared or len(compared) == len(runs)
        self._comparison = everything if is_all else self._compare(compared)

    def page(self) -> Page:
        """The page."""
        shown, runs = self._shown, self._runs
        configs = len(set(self._groups.values()))
        shared = self._names.shared if len(runs) > 1 else runs[0].environment
        counts = f"{_plural(len(runs), 'run')}, {_plural(configs, 'config')}"
        about = " · ".join(
            filter(None, (shared, counts, f"Callboard, {shown.at.day} {shown.at:%B %Y, %H:%M} UTC"))
        )
        sections = [
            Section("Verdict", self._verdict()),
            Section("Curves", self._charts()),
            Section("Scores", self._scores()),
            Section("Runs", [self._table_of_runs()]),
            Section("Commands", self._commands()),
        ]
        title = shown.title if shown.names else "Comparison" if len(runs) > 1 else "Run"
        return Page(title, about, [section for section in sections if section.blocks])

    def _compare(self, runs: Sequence[Run]) -> Comparison:
        wanted = self._document.verdict
        return comparisons.compare(
            self._session,
            [run.id for run in runs],
            wanted.score,
            wanted.at,
            wanted.threshold,
            wanted.protocol,
            self._baseline,
            all_pairs=wanted.pairs == "all",
        )

    def _hidden_series(self, everything: Comparison) -> set[str]:
        """Ids of the runs or groups that are not drawn at first."""
        chosen = self._document.hidden
        if chosen is not None:
            return {self._renamed.get(series, series) for series in chosen}
        if self._grouped:
            ranked = [group.id for group in sorted(everything.groups, key=_rank_of_group)]
        else:
            ranked = [run.id for run in sorted(self._runs, key=_rank_of_run)]
        return set(ranked[MAX_DRAWN:])

    def _is_hidden(self, run: Run) -> bool:
        return (self._groups[run.id] if self._grouped else run.id) in self._hidden

    def _verdict(self) -> list[Block]:
        comparison, names = self._comparison, {group.id: group for group in self._comparison.groups}
        blocks: list[Block] = []
        for best in comparison.best:
            leader, rival = names[best.group], names.get(best.rival or "")
            about = f"{best.environment}: " if len(comparison.best) > 1 else ""
            if rival is None:
                continue
            pair = _pair(comparison, leader.id, rival.id)
            better = None if pair is None else pair.better
            versus = "the baseline " if rival.id in comparison.baselines else ""
            name, other = self._group_names[leader.id], self._group_names[rival.id]
            is_decided = better == leader.id
            text = f"{about}{name} {'is better than' if is_decided else 'is ahead of'} {versus}{other}"
            if pair is not None:
                text += (
                    f": {_signed(pair, leader.id)}, {_p(pair.p_adjusted)}, "
                    f"{leader.n} + {_plural(rival.n, 'seed')}"
                )
            contrary = f". Not decided: the test finds {other} better." if better else ". Not decided."
            blocks.append(text + ("." if is_decided else contrary))
        n_left = len({*self._groups.values()}) - len(comparison.groups)
        if n_left > 0 and blocks:
            blocks.append(f"{_plural(n_left, 'further config')} not compared.")
        return blocks

    def _charts(self) -> list[Block]:
        blocks: list[Block] = []
        environments = list(dict.fromkeys(run.environment for run in self._runs))
        wanted = [panel for panel in self._document.panels if panel.kind == "lines"]
        metrics = [(metric, panel.log) for panel in wanted for metric in panel.metrics]
        if not self._document.panels:
            metrics = [(EPISODE_RETURN, False)]
        n_left = sum(self._is_hidden(run) for run in self._runs)
        if metrics and n_left:
            blocks.append("The best are drawn at first: click a name in the legend to draw or hide it.")
        lines = [
            (metric, is_log, environment)
            for metric, is_log in metrics
            for environment in (environments if len(environments) > 1 else [None])
        ]
        scatters = [panel for panel in self._document.panels if panel.kind == "scatter" and panel.setting]
        for metric, is_log, environment in lines[:MAX_CHARTS]:
            chart = self._lines(metric, environment, is_log=is_log)
            blocks += [chart] if chart.light.data else []
        for panel in scatters[: max(0, MAX_CHARTS - len(lines))]:
            try:
                chart = self._scatter(panel)
            except Invalid:
                continue  # no run has the setting any more
            blocks += [chart] if chart.light.n_total else []
        n_left = len(lines) + len(scatters) - MAX_CHARTS
        if n_left > 0:
            blocks.append(f"{_plural(n_left, 'further chart')} left out: a page has at most {MAX_CHARTS}.")
        return blocks

    @property
    def _styles(self) -> WantedStyles:
        colours = self._document.colours
        of_runs = [colours.get(run.id) for run in self._runs]
        of_groups = {self._renamed[id_]: style for id_, style in colours.items() if id_ in self._renamed}
        known = [style for style in of_runs if style is not None]
        return WantedStyles(known if len(known) == len(of_runs) else (), of_groups)

    def _lines(self, metric: str, environment: str | None, *, is_log: bool) -> Chart:
        curves = self._document.curves
        points = _FEW_POINTS if len(self._runs) > _MAX_DETAILED else _POINTS
        span = None if curves.zoom is None else (max(0.0, curves.zoom.start), curves.zoom.end)
        if curves.smoothing == "points":
            axes = Axes(curves.x, points, curves.weight or 0.0, "points", span=span)
        else:
            axes = Axes(curves.x, points, 0.0, curves.smoothing, curves.scale, span)
        kind: FigureKind = "learning_curve" if metric == EPISODE_RETURN else "curve"
        request = FigureRequest(
            [run.id for run in self._runs],
            [FigureName("seed_curve" if self._grouped else kind, metric)],
            (),
            axes,
            _spread(self._document),
            FigureOptions(),
            styles=self._styles,
            environment=environment,
        )
        light, dark = (
            self._as_shown(figure, is_log=is_log)
            for [figure] in figures.draw_in_themes(self._session, request, _THEMES)
        )
        is_named = self._hiding is not None and self._hiding.is_naming(metric)
        return self._chart(light, dark, f"{'A metric' if is_named else metric} over training")

    def _chart(self, light: Figure, dark: Figure, label: str) -> Chart:
        """Figures in both themes, perhaps without names."""
        if self._hiding is not None:
            for figure in (light, dark):
                figure.data = [trace for trace in figure.data if not _is_written_by_people(trace)]
                self._hiding.hide(figure)
        return Chart(light, dark, label)

    def _as_shown(self, figure: Figure, *, is_log: bool) -> Figure:
        """A figure with what the page hides, draws bold, or on a logarithmic axis."""
        bold = (
            {self._baseline}
            if self._grouped
            else {run.id for run in self._runs if self._groups[run.id] == self._baseline}
        )
        for trace in figure.data:
            meta = trace.get("meta") or {}
            series = meta.get("group") or meta.get("run")
            if series in self._hidden:
                trace["visible"] = "legendonly"
            if series in bold and meta.get("kind") == "line":
                trace["line"] = trace["line"] | {"width": _BOLD_PX}
        if is_log:
            figure.layout["yaxis"] = figure.layout.get("yaxis", {}) | {"type": "log"}
        return figure

    def _scatter(self, panel: ScatterPanel) -> Chart:
        assert panel.setting is not None
        light, dark = (
            draw_scatter(
                self._session,
                [run.id for run in self._runs],
                panel.setting,
                panel.score,
                FigureOptions(theme=theme),
                self._styles,
                grouped=self._grouped,
            )
            for theme in _THEMES
        )
        is_named = self._hiding is not None and self._hiding.is_naming(panel.setting)
        return self._chart(light, dark, f"Scores by {'a setting' if is_named else panel.setting}")

    def _scores(self) -> list[Block]:
        comparison = self._comparison
        groups = sorted((group for group in comparison.groups if group.n), key=_rank_of_group)
        if not groups:
            return []
        has_baseline = bool(comparison.baselines) and len(groups) > 1
        several = len({group.environment for group in groups}) > 1
        titles = [
            "Config",
            *(["Environment"] if several else []),
            *("Seeds", "Median [95 % CI]", "Interquartile mean"),
            *(["Difference from ★ [95 % CI]", "p"] if has_baseline else []),
        ]
        rows = []
        for group in groups:
            is_baseline = group.id in comparison.baselines
            pairs = [_pair(comparison, group.id, other) for other in comparison.baselines]
            pair = next((pair for pair in pairs if pair is not None and not is_baseline), None)
            difference = "baseline" if is_baseline else _signed(pair, group.id) if pair else _DASH
            row = [
                ("★ " if is_baseline and has_baseline else "") + self._group_names[group.id],
                *([group.environment] if several else []),
                str(group.n) if group.n == len(group.runs) else f"{group.n} of {len(group.runs)}",
                _estimate(group.median),
                _estimate(group.iqm),
                *([difference, _p(pair.p_adjusted) if pair else ""] if has_baseline else []),
            ]
            rows.append(row)
        holm = (
            f"; p-values by Holm’s method for {comparison.n_comparisons} comparisons, intervals uncorrected"
            if comparison.n_comparisons > 1
            else ""
        )
        scores = "Mean of the last 100 training returns"
        where = "at the shortest run’s length" if comparison.at == "common" else "at each run’s end"
        about = scores if comparison.score == "training" else "Latest evaluation"
        return [
            Table(titles, rows, n_left=2 if several else 1),
            f"{about}, {where}. {comparison.method}{holm}.",
        ]

    def _table_of_runs(self) -> Table:
        names = self._names.names
        units = {run.step_unit for run in self._runs}
        steps = "Agent steps" if units == {"agent_steps"} else "Iterations" if len(units) == 1 else "Steps"
        rows = [
            [
                name,
                str(run.state),
                str(run.seed) if run.spec.get("seed_is_known", True) else _DASH,
                f"{run.agent_steps:,}",
                _number(run.score) + (" (early)" if is_early(run) and run.score is not None else ""),
                _number(run.best_return),
            ]
            for name, run in zip(names, self._runs, strict=True)
        ]
        return Table(["Run", "State", "Seed", steps, "Score", "Best return"], rows, n_left=2)

    def _commands(self) -> list[Block]:
        """What trains a run of each config again."""
        members: dict[str, list[Run]] = {}
        for run in self._runs:
            members.setdefault(self._groups[run.id], []).append(run)
        scripts: dict[str, list[str]] = {}
        if self._shown.names:
            for process in repository.processes(self._session, [run.id for run in self._runs]):
                scripts.setdefault(process.run_id, process.provenance.get("command") or [])
        lines = []
        for runs in members.values():
            if runs[0].origin != EXTERNAL:
                commands = command_lines(runs[0])
            else:
                script = scripts.get(runs[0].id)
                commands = [shlex.join(script)] if script else []
            seeds = sorted({run.seed for run in runs})
            if commands and len(seeds) > 1:
                lines.append(f"# seeds {', '.join(map(str, seeds))}")
            lines += commands
        return [Code(lines)] if lines else []


def _is_written_by_people(trace: Mapping[str, object]) -> bool:
    """Whether a trace is of notes, or of their entry in the legend."""
    return trace.get("legendgroup") == "notes"


def _spread(document: ViewDocument) -> Spread:
    curves = document.curves
    try:
        return Spread.chosen(curves.centre, curves.interval, seeds=curves.seeds)
    except ValueError:
        return Spread.chosen(None, "se")


def _rank_of_group(group: GroupStatistics) -> tuple[bool, float]:
    value = group.iqm.value if group.iqm else None
    return group.n_broken_off > 0, float("inf") if value is None else -value


def _rank_of_run(run: Run) -> tuple[bool, bool, float]:
    return run.state in BROKEN_OFF, is_early(run), float("inf") if run.score is None else -run.score


def _pair(comparison: Comparison, a: str, b: str) -> Improvement | None:
    return next((pair for pair in comparison.improvements if {pair.a, pair.b} == {a, b}), None)


def _signed(pair: Improvement, group: str) -> str:
    """The difference of a group of a pair from the other one, with its interval."""
    given = pair.difference
    sign = 1.0 if pair.a == group else -1.0
    ends = [None if end is None else sign * end for end in (given.low, given.high)]
    low, high = ends if sign > 0 else reversed(ends)
    value = None if given.value is None else sign * given.value
    text = _estimate(EstimateOut(value=value, low=low, high=high))
    return f"+{text}" if (value or 0.0) > 0 else text


def _estimate(estimate: EstimateOut | None) -> str:
    if estimate is None or estimate.value is None:
        return _DASH
    if estimate.low is None and estimate.high is None:
        return _number(estimate.value)
    high = "∞" if estimate.high is None else _number(estimate.high)
    return f"{_number(estimate.value)} [{_number(estimate.low)}, {high}]"


def _number(value: float | None) -> str:
    """A score, with as many digits as on pages."""
    if value is None:
        return _DASH
    digits = 0 if abs(value) >= 999.95 else 1 if abs(value) >= 9.995 else 2
    return f"{value:,.{digits}f}".replace("-", MINUS)


def _p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.{3 if p < 0.1 else 2}f}"


def _plural(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"
