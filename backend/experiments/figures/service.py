"""A study's runs reduced to one of its figures: the runs, and the drawing of the figure's kind."""

from collections.abc import Iterator
from dataclasses import replace

from sqlalchemy.orm import Session

from backend.db import Experiment
from backend.drawing.palette import Theme
from backend.drawing.panels import Frame
from backend.experiments.cells import repository
from backend.experiments.cells.protocols import protocols_of
from backend.experiments.figures.kind import StudyDrawing
from backend.experiments.figures.kinds import KINDS
from backend.experiments.figures.runs import FigureRuns, load_runs
from backend.experiments.figures.words import MAX_SETS
from backend.experiments.specs.study import StudyFigure, StudySpec
from backend.platform.errors import NotFound
from backend.runs.starts import service as starts
from backend.specs.host_load import CPU_GRANTED, STARVED_PCT
from backend.specs.problems import quoted
from backend.specs.protocols import protocol_title, starts_protocol


def build_figure(
    session: Session,
    study: Experiment,
    spec: StudySpec,
    figure_id: str,
    *,
    theme: Theme,
    width_px: int | None,
) -> StudyDrawing:
    """Build one figure of a study.

    Raises:
        NotFound: the study has no such figure.
    """
    figure = next((figure for figure in spec.figures if figure.id == figure_id), None)
    if figure is None:
        known = ", ".join(figure.id for figure in spec.figures)
        raise NotFound(f"the study has no figure {quoted(figure_id)}; it has {known}")
    runs = load_runs(session, study, spec, figure)
    kind = KINDS[figure.kind]
    frame = Frame(figure.title, runs.labels, theme, width_px)
    drawing: StudyDrawing = kind.draw(runs, kind.load(session, runs), frame)
    beside = _beside_others(session, runs) if compares_times(figure) else ""
    starved = _starved(session, runs)
    captions = filter(None, [drawing.caption, beside, starved, *_captions_of_starts(session, runs)])
    return replace(drawing, caption="; ".join(captions))


def compares_times(figure: StudyFigure) -> bool:
    """Whether a figure shows training times or rates, which runs beside each other on one host change."""
    rule = figure.reduction
    is_time = rule.rule in ("time_to", "time_to_peak") and rule.axis == "wall_time_s"
    names = (*figure.metrics, rule.metric or "")
    is_rate = any(name.startswith("speed/") for name in names)
    return is_time or is_rate or KINDS[figure.kind].shows_times(figure)


def _beside_others(session: Session, runs: FigureRuns) -> str:
    """How many of the finished runs trained beside others, in words; empty if none did."""
    run_ids = [row.run_id for row in runs.rows if row.counts and row.run_id]
    n = len(repository.trained_beside_others(session, run_ids))
    return f"{n} of {len(run_ids)} finished runs trained beside others on their host" if n else ""


def _starved(session: Session, runs: FigureRuns) -> str:
    """How many of the finished runs waited longer for a core than they had one, in words; empty if none did,
    or where that is not known."""
    run_ids = [row.run_id for row in runs.rows if row.counts and row.run_id]
    granted = repository.metric_means_of_runs(session, run_ids, [CPU_GRANTED])
    n = sum(means[CPU_GRANTED] < STARVED_PCT for means in granted.values())
    if not n:
        return ""
    return f"{n} of {len(run_ids)} finished runs had less than half of the processor time that they could use"


def _captions_of_starts(session: Session, runs: FigureRuns) -> Iterator[str]:
    """What the start sets of the evaluations hold, each in words; of many the first ones."""
    protocols = [
        protocol
        for protocol in dict.fromkeys(
            protocol
            for number in range(len(runs.spec.arms))
            for protocol in protocols_of(runs.spec, number, runs.environments).values()
        )
        if starts_protocol(protocol)
    ]
    for protocol in protocols[:MAX_SETS]:
        yield f"{protocol_title(protocol)}: {starts.caption_of(session, protocol) or 'not here any more'}"
    if len(protocols) > MAX_SETS:
        yield f"and {len(protocols) - MAX_SETS} more start sets"
