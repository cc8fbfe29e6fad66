"""Figures for Plotly, or as HTML."""

from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import Field

from backend.db.base import ID_ALPHABET
from backend.errors import Invalid
from backend.figures import service
from backend.figures.diagnostics import BY_ID
from backend.figures.figure import Figure
from backend.figures.service import FigureOptions
from backend.figures.theme import DASHES, Theme, colours
from backend.http.access import Viewer
from backend.http.dependencies import Artifacts, ReadSession
from backend.http.pages import Ulid
from backend.http.transfer import conditional_response
from backend.metrics.axes import ChosenSpread, SmoothedAxes
from backend.metrics.catalogue import EPISODE_RETURN
from backend.specs.fields import Schema
from backend.specs.problems import quoted
from backend.text import Text

router = APIRouter(prefix="/figures", tags=["figures"])


class FigureOut(Schema):
    """A Plotly figure."""

    data: list[dict[str, Any]]
    """Traces. Traces of series have `meta` {run, metric, source, y} (for seed groups, `group` instead of
    `run`). Without `data=true` their x and y are empty, to be filled from the columns `x` and `meta.y` of
    `GET /series`, with buckets at one x merged: with `meta.below` only buckets with less values, with
    `meta.from` the outline between the columns `meta.low` and `meta.y` of buckets with at least as many."""
    layout: dict[str, Any]
    """Layout of the figure, as Plotly reads it."""


class Palette(Schema):
    """The styles of runs and groups on every chart: style s has colour s % 8 and dash s // 8 % 4."""

    light: list[str]
    """Colours on light pages."""
    dark: list[str]
    """Colours on dark pages."""
    dashes: list[str]
    """Dashes, by Plotly's names."""
    run_characters: str
    """A run has the style of the position of its id's last character in these."""


class PanelOut(Schema):
    """A panel of a run's diagnostics."""

    id: str
    """Id of the panel, for `GET /figures/diagnostic`."""
    title: str = Field(examples=["Queues"])
    """Name of the panel, as pages show it."""
    metrics: list[str]
    """The metrics that it shows."""


class Panels(Schema):
    """The diagnostics panels of a run."""

    items: list[PanelOut]
    """Panels that the run has data for."""


FORMATS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": FigureOut,
        "content": {"text/html": {"schema": {"type": "string"}}},
        "description": "A figure, or an HTML page with it.",
    }
}

Form = Annotated[
    Literal["json", "html"], Query(description="`json` for Plotly, or a page of its own as `html`.")
]
Runs = Annotated[list[Ulid], Query(min_length=1, max_length=100, description="Run ids.")]
Metric = Annotated[Text, Query(description="Name of the metric, such as `rollout/episode_return`.")]
MaxPoints = Annotated[int, Query(ge=1, le=10_000, description="Maximum number of points per series.")]


async def _options(
    data: Annotated[
        bool, Query(description="Include the data of series; an HTML page always includes it.")
    ] = False,
    format: Form = "json",
    theme: Annotated[Theme, Query(description="Colours for light or for dark pages.")] = "light",
    width: Annotated[int | None, Query(ge=200, le=4000, description="Width in CSS pixels, if known.")] = None,
) -> FigureOptions:
    return FigureOptions(theme=theme, width_px=width, with_data=data or format == "html")


Options = Annotated[FigureOptions, Depends(_options)]


@router.get("/palette")
def palette(principal: Viewer) -> Palette:
    """The colours of runs and groups."""
    return Palette(
        light=list(colours("light")),
        dark=list(colours("dark")),
        dashes=list(DASHES),
        run_characters=ID_ALPHABET,
    )


@router.get("/learning_curve", response_model=None, responses=FORMATS)
def learning_curve(
    request: Request,
    run: Runs,
    principal: Viewer,
    session: ReadSession,
    axes: SmoothedAxes,
    options: Options,
    format: Form = "json",
) -> Response:
    """Returns over training, with evaluations, published scores, checkpoints, restarts and setting
    changes."""
    return _answer(
        request, service.draw_learning_curve(session, run, axes, options), format, "learning_curve"
    )


@router.get("/curve", response_model=None, responses=FORMATS)
def curve(
    request: Request,
    run: Runs,
    metric: Metric,
    principal: Viewer,
    session: ReadSession,
    axes: SmoothedAxes,
    options: Options,
    source: Annotated[list[Text], Query(max_length=100, description="As for `GET /series`.")] = [],  # noqa: B006
    format: Form = "json",
) -> Response:
    """Any metric over training."""
    return _answer(request, service.draw_curve(session, run, metric, source, axes, options), format, "curve")


@router.get("/seed_curve", response_model=None, responses=FORMATS)
def seed_curve(
    request: Request,
    run: Runs,
    principal: Viewer,
    session: ReadSession,
    axes: SmoothedAxes,
    spread: ChosenSpread,
    options: Options,
    metric: Metric = EPISODE_RETURN,
    source: Annotated[list[Text], Query(max_length=100, description="As for `GET /series`.")] = [],  # noqa: B006
    format: Form = "json",
) -> Response:
    """Runs that differ in their seed alone as one curve with mean and band. Its traces' `meta` has
    `group`."""
    figure = service.draw_seed_curve(session, run, metric, source, axes, spread, options)
    return _answer(request, figure, format, "seed_curve")


@router.get("/scatter", response_model=None, responses=FORMATS)
def scatter(
    request: Request,
    run: Runs,
    x: Annotated[Text, Query(description="A field or setting of runs, such as `config.learning_rate`.")],
    principal: Viewer,
    session: ReadSession,
    options: Options,
    y: Annotated[
        service.Score, Query(description="The score: of the last 100 training episodes, or the best return.")
    ] = "score",
    format: Form = "json",
) -> Response:
    """A score of runs against one of their settings. Its data is always included."""
    return _answer(request, service.draw_scatter(session, run, x, y, options), format, "scatter")


@router.get("/diagnostics")
def list_diagnostics(
    run: Annotated[Ulid, Query(description="Run id.")], principal: Viewer, session: ReadSession
) -> Panels:
    """The diagnostics panels that a run has data for; empty if it has none."""
    found = service.diagnostic_panels(session, run)
    return Panels(
        items=[PanelOut(id=panel.id, title=panel.title, metrics=list(panel.names)) for panel in found]
    )


@router.get("/diagnostic", response_model=None, responses=FORMATS)
def diagnostic(
    request: Request,
    run: Annotated[Ulid, Query(description="Run id.")],
    panel: Annotated[Text, Query(description="An id from `GET /figures/diagnostics`.")],
    principal: Viewer,
    session: ReadSession,
    axes: SmoothedAxes,
    options: Options,
    format: Form = "json",
) -> Response:
    """One panel of a run's diagnostics."""
    if panel not in BY_ID:
        raise Invalid.field("panel", f"unknown panel {quoted(panel)}; use one of {', '.join(BY_ID)}")
    return _answer(request, service.draw_diagnostic(session, run, BY_ID[panel], axes, options), format, panel)


@router.get("/episode_trace", response_model=None, responses=FORMATS)
def episode_trace(
    request: Request,
    episode: Annotated[Ulid, Query(description="Episode id.")],
    principal: Viewer,
    session: ReadSession,
    artifacts: Artifacts,
    options: Options,
    points: MaxPoints = 1000,
    format: Form = "json",
) -> Response:
    """Reward, value and policy over a recorded episode. Its data is always included."""
    figure = service.draw_episode_trace(session, artifacts, episode, points, options)
    return _answer(request, figure, format, "episode_trace")


def _answer(request: Request, figure: Figure, form: Form, name: str) -> Response:
    if form == "html":
        page = figure.to_html()
        # A download: the content security policy of this server would block its inline script.
        disposition = f'attachment; filename="{name}.html"'
        return Response(page, media_type="text/html", headers={"Content-Disposition": disposition})
    return conditional_response(request, orjson.dumps({"data": figure.data, "layout": figure.layout}))
