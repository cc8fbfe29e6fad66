"""Figures of a run's histograms, read from the database."""

from sqlalchemy.orm import Session

from backend.analysis.media import repository, service
from backend.drawing.catalogue import X_AXES
from backend.drawing.distribution import distribution_figure, histogram_figure
from backend.drawing.figure import Figure, FigureOptions
from backend.platform.errors import NotFound
from backend.runs.runs import service as runs
from backend.specs.problems import quoted

MAX_DRAWN = 400
"""Histograms of a figure: more would be narrower than a pixel each."""


def _places(session: Session, run_id: str, metric: str) -> list[repository.Place]:
    places = repository.places(session, run_id, metric)
    if not places:
        raise NotFound(f"run {run_id} has no histogram of {quoted(metric)}")
    return places


def draw_distribution(session: Session, run_id: str, metric: str, options: FigureOptions) -> Figure:
    """The histograms of a metric over training.

    Raises:
        NotFound: there is no such run, or it has none.
    """
    run, places = runs.get(session, run_id), _places(session, run_id, metric)
    step = (len(places) - 1) / max(1, min(len(places), MAX_DRAWN) - 1)
    drawn = [places[round(number * step)] for number in range(min(len(places), MAX_DRAWN))]
    figure = distribution_figure(
        metric,
        [place.agent_steps for place in drawn],
        service.histograms_of(session, drawn),
        axis=X_AXES[run.step_unit].axis,
        n_total=len(places),
        options=options,
    )
    figure.x = run.step_unit
    return figure


def draw_histogram(
    session: Session, run_id: str, metric: str, agent_steps: int | None, options: FigureOptions
) -> Figure:
    """The latest histogram of a metric up to these agent steps, or the first; without them the latest.

    Raises:
        NotFound: there is no such run, or it has none.
    """
    run, places = runs.get(session, run_id), _places(session, run_id, metric)
    before = [place for place in places if agent_steps is None or place.agent_steps <= agent_steps]
    place = before[-1] if before else places[0]
    [histogram] = service.histograms_of(session, [place])
    return histogram_figure(
        metric,
        histogram,
        at=f"at {place.agent_steps:,} {X_AXES[run.step_unit].unit}",
        options=options,
    )
