"""Routes of figures: layout from Python, numbers on demand."""

from typing import Annotated, Any, Literal

import orjson
import plotly.graph_objects as go
from fastapi import APIRouter, Depends, Query, Response
from pydantic import BaseModel

from backend.auth.access import Viewer
from backend.dependencies import Artifacts, ReadSession
from backend.errors import Invalid
from backend.figures import seeds, service
from backend.figures.internals import BY_ID
from backend.figures.learning_curve import METRIC
from backend.figures.service import Look
from backend.figures.theme import Theme
from backend.ids import Ulid
from backend.metrics.charts import Axes
from backend.metrics.grouping import Interval
from backend.metrics.schemas import X
from backend.metrics.smoothing import MAX_WEIGHT
from backend.text import Text

router = APIRouter(prefix="/figures", tags=["figures"])


class FigureOut(BaseModel):
    """A plotly figure."""

    data: list[dict[str, Any]]
    """Traces. Those of series have `meta` {run, metric, source, y} (of seed groups, `group` for `run`);
    without `data=true` their x and y are empty, to be filled from the columns `x` and `meta.y` of
    `GET /series`."""
    layout: dict[str, Any]


class PanelOut(BaseModel):
    """A panel of a run's internals."""

    id: str
    title: str
    metrics: list[str]
    """Those it is drawn of."""


class Panels(BaseModel):
    """What can be drawn of a run's internals."""

    items: list[PanelOut]


FORMATS: dict[int | str, dict[str, Any]] = {
    200: {"model": FigureOut, "content": {"text/html": {}}, "description": "A figure, or a page with it."}
}

Form = Literal["json", "html"]
Runs = Annotated[list[Ulid], Query(min_length=1, max_length=100, description="Run ids.")]
Points = Annotated[int, Query(ge=1, le=10_000, description="At most this many a series.")]


def _look(
    data: Annotated[bool, Query(description="With the numbers of series; a page always has them.")] = False,
    format: Form = "json",
    theme: Theme = "light",
    width: Annotated[int | None, Query(ge=200, le=4000, description="In CSS pixels, if it is known.")] = None,
) -> Look:
    return Look(theme=theme, width_px=width, with_data=data or format == "html")


def _axes(
    x: X = "agent_steps",
    points: Points = 1000,
    smooth: Annotated[
        float, Query(ge=0, le=MAX_WEIGHT, description="Weight of the past in the moving average.")
    ] = 0.9,
) -> Axes:
    return Axes(x=x, max_points=points, smooth=smooth)


ThisLook = Annotated[Look, Depends(_look)]
TheseAxes = Annotated[Axes, Depends(_axes)]


@router.get("/learning_curve", response_model=None, responses=FORMATS)
def learning_curve(
    run: Runs, actor: Viewer, session: ReadSession, axes: TheseAxes, look: ThisLook, format: Form = "json"
) -> Response:
    """Returns over training, with evaluations, published levels, checkpoints, restarts, setting changes."""
    return _answer(service.draw_learning_curve(session, run, axes, look), format, "learning_curve")


@router.get("/curve", response_model=None, responses=FORMATS)
def curve(
    run: Runs,
    metric: Text,
    actor: Viewer,
    session: ReadSession,
    axes: TheseAxes,
    look: ThisLook,
    source: Annotated[list[Text], Query(max_length=100, description="As for `GET /series`.")] = [],  # noqa: B006
    format: Form = "json",
) -> Response:
    """Any metric over training."""
    return _answer(service.draw_curve(session, run, metric, source, axes, look), format, "curve")


@router.get("/seed_curve", response_model=None, responses=FORMATS)
def seed_curve(
    run: Runs,
    actor: Viewer,
    session: ReadSession,
    axes: TheseAxes,
    look: ThisLook,
    metric: Text = METRIC,
    source: Annotated[list[Text], Query(max_length=100, description="As for `GET /series`.")] = [],  # noqa: B006
    interval: Annotated[Interval, Query(description="What the band shows.")] = "ci95",
    format: Form = "json",
) -> Response:
    """Runs that differ in their seed alone as one curve: mean and band. Its traces' `meta` has `group`."""
    figure = seeds.draw_seed_curve(session, run, metric, source, axes, interval, look)
    return _answer(figure, format, "seed_curve")


@router.get("/internals")
def list_internals(
    run: Annotated[Ulid, Query(description="Run id.")], actor: Viewer, session: ReadSession
) -> Panels:
    """What a run's method is made of, as far as it has been measured; empty where there is nothing."""
    found = service.internal_panels(session, run)
    return Panels(
        items=[PanelOut(id=panel.id, title=panel.title, metrics=list(panel.names)) for panel in found]
    )


@router.get("/internal", response_model=None, responses=FORMATS)
def internal(
    run: Annotated[Ulid, Query(description="Run id.")],
    panel: Annotated[Text, Query(description="As `/figures/internals` lists.")],
    actor: Viewer,
    session: ReadSession,
    axes: TheseAxes,
    look: ThisLook,
    format: Form = "json",
) -> Response:
    """One panel of a run's internals."""
    if panel not in BY_ID:
        raise Invalid.field("panel", f"there is no panel {panel!r:.40}; there are {', '.join(BY_ID)}")
    return _answer(service.draw_internals(session, run, BY_ID[panel], axes, look), format, panel)


@router.get("/episode_trace", response_model=None, responses=FORMATS)
def episode_trace(
    episode: Annotated[Ulid, Query(description="Episode id.")],
    actor: Viewer,
    session: ReadSession,
    artifacts: Artifacts,
    look: ThisLook,
    points: Points = 1000,
    format: Form = "json",
) -> Response:
    """Reward, V and pi over one kept episode. Its numbers are always there."""
    figure = service.draw_episode_trace(session, artifacts, episode, points, look)
    return _answer(figure, format, "episode_trace")


def _answer(figure: "go.Figure", form: Form, name: str) -> Response:
    if form == "html":
        page = figure.to_html(include_plotlyjs=True, full_html=True)
        # To be kept and opened from a disk: on this server its script would be refused.
        disposition = f'attachment; filename="{name}.html"'
        return Response(page, media_type="text/html", headers={"Content-Disposition": disposition})
    return Response(orjson.dumps(figure.to_plotly_json()), media_type="application/json")
