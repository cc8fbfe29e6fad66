"""`table`: the values of arms beside published scores, or means of metrics."""

from collections.abc import Iterator, Sequence

from sqlalchemy.orm import Session

from backend.drawing.catalogue import describe
from backend.drawing.panels import Frame
from backend.experiments.cells.protocols import protocols_of
from backend.experiments.figures.kind import Kind, StudyDrawing
from backend.experiments.figures.kinds.bars import MetricMeans, load_means
from backend.experiments.figures.reducers import TARGETS, count_runs, reduce_runs, references_of
from backend.experiments.figures.runs import FigureRuns
from backend.experiments.figures.tables import Column, Table, TableCell, TableRow
from backend.experiments.figures.words import finite_or_none, highest_and_lowest, protocols_title
from backend.specs.environments import ENVIRONMENTS
from backend.specs.protocols import protocol_title
from backend.statistics.across import across_environments
from backend.statistics.cells import Cell, Reduction
from backend.statistics.reducers import normalise

PublishedColumn = tuple[str, str, str]
"""Label, protocol and source."""


def _load(session: Session, runs: FigureRuns) -> MetricMeans | None:
    """The means of its metrics, if it has any."""
    return load_means(session, runs) if runs.figure.metrics else None


def _draw(runs: FigureRuns, means: MetricMeans | None, frame: Frame) -> StudyDrawing:
    if means is not None:
        table = _metric_table(runs, means)
        return StudyDrawing(
            runs.figure, None, table, means.caption, means.finding, means.n_in, runs.n_planned
        )
    reduction = reduce_runs(runs)
    n_in, n_planned = count_runs(runs, reduction.cells)
    finding = highest_and_lowest(runs, reduction)
    table = _score_table(runs, reduction)
    return StudyDrawing(runs.figure, None, table, reduction.caption, finding, n_in, n_planned)


def _metric_table(runs: FigureRuns, means: MetricMeans) -> Table:
    """Arms as rows, on several environments one for each; metrics as columns."""
    shown = [describe(metric) for metric in runs.figure.metrics]
    columns = [Column("Method", "", "name")]
    columns += [Column(about.title, f"{about.axis}, mean over runs", "ours") for about in shown]
    rows = []
    several = len(runs.spec.environments) > 1
    for environment in runs.spec.environments:
        title = runs.title(environment)
        for arm in runs.arms:
            by_part = {bar.part: bar for bar in means.bars if (bar.arm, bar.panel) == (arm.label, title)}
            planned = runs.planned[arm.label, environment]
            cells = [
                TableCell(by_part[about.title].value, n=by_part[about.title].n, planned=planned)
                for about in shown
            ]
            rows.append(TableRow(f"{arm.label}, {title}" if several else arm.label, cells))
    return Table(columns, rows, [])


def _score_table(runs: FigureRuns, reduction: Reduction) -> Table:
    """Environments as rows; each arm and each published score as a column."""
    published = list(_published_columns(runs))
    columns = [Column("Environment", "", "name"), *_columns_of_arms(runs, reduction)]
    target = runs.figure.reduction.normalise
    by = "" if target is None else f"{TARGETS[target]}-normalised here; "
    unit = "" if target is None else reduction.unit
    columns += [
        Column(label, f"{protocol_title(protocol)}; {by}{where}", "published", unit=unit)
        for label, protocol, where in published
    ]
    by_place = {(cell.arm, cell.environment): cell for cell in reduction.cells}
    labels, rows = runs.labels, []
    for environment in runs.spec.environments:
        ours = [_table_cell(by_place.get((label, environment))) for label in labels]
        cells = [*ours, *_published_cells(runs, environment, published)]
        rows.append(TableRow(runs.title(environment), cells))
    has_foot = len(runs.spec.environments) > 1 and reduction.unit != "score"  # which have no common scale
    foot = [*_foot(reduction, labels, len(published))] if has_foot else []
    return Table(columns, rows, foot)


def _columns_of_arms(runs: FigureRuns, reduction: Reduction) -> Iterator[Column]:
    rule = runs.figure.reduction
    is_trained = rule.source == "training" and rule.rule != "best_kept"
    for number, arm in enumerate(runs.spec.arms):
        if arm in runs.arms:
            protocols = protocols_of(runs.spec, number, runs.environments).values()
            how = "last 100 training episodes" if is_trained else protocols_title(protocols)
            # `top` is of a metric, not of scores.
            title = reduction.rule if rule.rule == "top" else f"{how}; {reduction.rule}"
            yield Column(arm.label, title, "ours", unit=reduction.unit)


def _table_cell(cell: Cell | None) -> TableCell:
    if cell is None:
        return TableCell(None)
    return TableCell(finite_or_none(cell.value), cell.low, cell.high, cell.n, cell.planned)


def _published_columns(runs: FigureRuns) -> Iterator[PublishedColumn]:
    """The published columns that some environment has."""
    sources: dict[tuple[str, str], str] = {}
    for named in runs.figure.published:
        label, _, protocol = named.partition("@")
        for environment in runs.spec.environments:
            known = ENVIRONMENTS.get(environment)
            for score in known.published if known else ():
                if score.label == label and protocol in ("", score.protocol):
                    sources.setdefault((label, score.protocol), score.source)
    return ((label, protocol, source) for (label, protocol), source in sources.items())


def _published_cells(
    runs: FigureRuns, environment: str, published: Sequence[PublishedColumn]
) -> Iterator[TableCell]:
    """The published scores of an environment, normalised by references of their own protocols."""
    target = runs.figure.reduction.normalise
    scores = ENVIRONMENTS[environment].published if environment in ENVIRONMENTS else ()
    for label, protocol, _ in published:
        printed = [score.score for score in scores if (score.label, score.protocol) == (label, protocol)]
        value = printed[0] if printed else None
        if target is not None:
            known = references_of(target, {environment: protocol})
            value = normalise(value, known[environment]) if environment in known else None
        yield TableCell(value)


def _foot(reduction: Reduction, labels: Sequence[str], n_published: int) -> Iterator[TableRow]:
    """Means and medians over the environments for which every arm has a value."""
    across = across_environments(reduction)
    n = len(across[0].environments) if across else 0
    for name, title in (("mean", "Mean"), ("median", "Median"), ("iqm", "IQM")):
        values = {summary.arm: getattr(summary, name) for summary in across}
        cells = [TableCell(values.get(label)) for label in labels]
        yield TableRow(f"{title} over {n} environments", [*cells, *[TableCell(None)] * n_published])


TABLE = Kind("table", shape="table", draw=_draw, load=_load)
