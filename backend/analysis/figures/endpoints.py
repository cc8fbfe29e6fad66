"""Figures for Plotly, or as files: whole, or what of them a client lacks."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

import orjson
from fastapi import Depends, Query, Request, Response
from sqlalchemy.orm import Session

from backend.analysis.figures import service
from backend.drawing.curve import Band
from backend.drawing.diagnostics import BY_ID
from backend.drawing.episode_trace import TRACE_PANELS, TracePanel
from backend.http.figures import FORMATS, FigureForm, RequestedForm, file_response
from backend.drawing.figure import Figure
from backend.drawing.palette import COLOUR_NAMES, N_STYLES, SYMBOLS, Theme, WantedStyles, all_colours
from backend.analysis.figures.schemas import FiguresOut, Palette, PanelOut, Panels
from backend.analysis.figures.service import FigureName, FigureOptions, FigureRequest
from backend.drawing.catalogue import EPISODE_RETURN
from backend.statistics.grouping import Spread
from backend.analysis.metrics.parameters import DrawnSpread, SmoothedAxes
from backend.http.access import Viewer
from backend.http.dependencies import Artifacts, ReadSession
from backend.http.pages import Ulid
from backend.http.routing import ResourceRouter
from backend.http.transfer import conditional_response
from backend.platform.errors import Invalid
from backend.platform.text import Text
from backend.replays.branches.outcomes import Returns
from backend.specs.problems import quoted

router = ResourceRouter(prefix="/figures", tags=["figures"])


DEFAULT_SPREAD = Spread.chosen(None, "se")
Runs = Annotated[list[Ulid], Query(min_length=1, max_length=100, description="Run ids.")]
Metric = Annotated[Text, Query(description="Name of the metric, such as `rollout/episode_return`.")]
MaxPoints = Annotated[int, Query(ge=1, le=10_000, description="Maximum number of points per series.")]


async def _options(
    theme: Annotated[Theme, Query(description="Colours for light or for dark pages.")] = "light",
    width: Annotated[int | None, Query(ge=200, le=4000, description="Width in CSS pixels, if known.")] = None,
    embedded: Annotated[
        bool, Query(description="For a panel of a page, which has a heading and a tooltip of its own.")
    ] = False,
) -> FigureOptions:
    return FigureOptions(theme=theme, width_px=width, in_panel=embedded)


async def _options_of_form(
    form: RequestedForm, options: Annotated[FigureOptions, Depends(_options)]
) -> FigureOptions:
    return FigureOptions() if form.is_for_paper else options


@dataclass(frozen=True)
class _Had:
    """What of the figures the client has."""

    since: list[int]
    with_layout: bool


async def _had(
    since_revision: Annotated[
        list[Annotated[int, Query(ge=0, le=2**62)]],
        Query(
            max_length=100,
            description="The client has the figure: return only what it lacks. One revision for all runs, or "
            "one per run.",
        ),
    ] = [],  # noqa: B006 - FastAPI copies it
    layout: Annotated[
        bool,
        Query(description="With `since_revision`, also the layout, and the traces that do not grow."),
    ] = False,
) -> _Had:
    return _Had(since_revision, layout)


async def _styles(
    style: Annotated[
        list[Annotated[int, Query(ge=0, lt=N_STYLES)]],
        Query(
            max_length=N_STYLES,
            description="Styles of the runs, in the order of `run`: see `GET /figures/palette`. Runs without "
            "one, or with one that another has, get the first free one.",
        ),
    ] = [],  # noqa: B006
    group_style: Annotated[
        list[Text],
        Query(max_length=N_STYLES, description="Styles of groups, each as `GROUP:STYLE`; the same applies."),
    ] = [],  # noqa: B006
) -> WantedStyles:
    of_groups = {}
    for text in group_style:
        group, _, number = text.rpartition(":")
        if not group or not number.isascii() or not number.isdigit() or len(number) > 2:
            raise Invalid.field("group_style", f"{quoted(text)} is not GROUP:STYLE, a style from 0 to 99")
        of_groups[group] = int(number)
    return WantedStyles(style, of_groups)


AroundRuns = Annotated[
    Band,
    Query(
        description="Around the lines of runs: `sd`, one standard deviation of the points of each window "
        "(only with `smoothing=window`), `min_max`, the range of each bucket of many points, or `none`; "
        "`auto` is `sd` for a figure of one line, else `none`."
    ),
]
OneEnvironment = Annotated[
    Text | None,
    Query(
        description="Id of an environment: draw only the runs of it, in the styles of all, for a page that "
        "shows a panel for each environment."
    ),
]
Options = Annotated[FigureOptions, Depends(_options)]
FormOptions = Annotated[FigureOptions, Depends(_options_of_form)]
Styles = Annotated[WantedStyles, Depends(_styles)]
Had = Annotated[_Had, Depends(_had)]
Sources = Annotated[list[Text], Query(max_length=100, description="As for `GET /series`.")]


@router.get("", response_model=FiguresOut)
def read_figures(
    run: Runs,
    figure: Annotated[
        list[Text],
        Query(
            min_length=1,
            max_length=100,
            description="`learning_curve`, `curve:METRIC`, `seed_curve:METRIC` or `diagnostic:PANEL`.",
        ),
    ],
    principal: Viewer,
    session: ReadSession,
    axes: SmoothedAxes,
    spread: DrawnSpread,
    options: Options,
    styles: Styles,
    had: Had,
    source: Sources = [],  # noqa: B006
    band: AroundRuns = "auto",
    environment: OneEnvironment = None,
) -> Response:
    """Several figures of the same runs, for a page that shows them."""
    names = [FigureName.parse(name) for name in figure]
    request = FigureRequest(
        run, names, source, axes, spread, options, had.since, had.with_layout, styles, band, environment
    )
    return _json({"items": service.draw(session, request).documents()})


@router.get("/palette")
def palette(principal: Viewer) -> Palette:
    """The styles of runs and groups."""
    return Palette(
        light=list(all_colours("light")),
        dark=list(all_colours("dark")),
        names=list(COLOUR_NAMES),
        symbols=list(SYMBOLS),
    )


@router.get("/learning_curve", response_model=None, responses=FORMATS)
def learning_curve(
    request: Request,
    run: Runs,
    principal: Viewer,
    session: ReadSession,
    axes: SmoothedAxes,
    options: FormOptions,
    form: RequestedForm,
    styles: Styles,
    had: Had,
    band: AroundRuns = "auto",
    environment: OneEnvironment = None,
) -> Response:
    """Returns over training, with evaluations, published scores, checkpoints, restarts, setting changes and
    notes."""
    name = FigureName("learning_curve", EPISODE_RETURN)
    wanted = FigureRequest(
        run, [name], [], axes, DEFAULT_SPREAD, options, had.since, had.with_layout, styles, band, environment
    )
    return _answer_drawn(request, session, wanted, form, "learning_curve")


@router.get("/curve", response_model=None, responses=FORMATS)
def curve(
    request: Request,
    run: Runs,
    metric: Metric,
    principal: Viewer,
    session: ReadSession,
    axes: SmoothedAxes,
    options: FormOptions,
    form: RequestedForm,
    styles: Styles,
    had: Had,
    source: Sources = [],  # noqa: B006
    band: AroundRuns = "auto",
    environment: OneEnvironment = None,
) -> Response:
    """Any metric over training."""
    name = FigureName("curve", metric)
    wanted = FigureRequest(
        run,
        [name],
        source,
        axes,
        DEFAULT_SPREAD,
        options,
        had.since,
        had.with_layout,
        styles,
        band,
        environment,
    )
    return _answer_drawn(request, session, wanted, form, "curve")


@router.get("/seed_curve", response_model=None, responses=FORMATS)
def seed_curve(
    request: Request,
    run: Runs,
    principal: Viewer,
    session: ReadSession,
    axes: SmoothedAxes,
    spread: DrawnSpread,
    options: FormOptions,
    form: RequestedForm,
    styles: Styles,
    had: Had,
    metric: Metric = EPISODE_RETURN,
    source: Sources = [],  # noqa: B006
    environment: OneEnvironment = None,
) -> Response:
    """Runs that differ in their seed alone as one curve with mean and band."""
    name = FigureName("seed_curve", metric)
    had_of = (had.since, had.with_layout)
    wanted = FigureRequest(
        run, [name], source, axes, spread, options, *had_of, styles, environment=environment
    )
    return _answer_drawn(request, session, wanted, form, "seed_curve")


@router.get("/scatter", response_model=None, responses=FORMATS)
def scatter(
    request: Request,
    run: Runs,
    x: Annotated[Text, Query(description="A field or setting of runs, such as `config.learning_rate`.")],
    principal: Viewer,
    session: ReadSession,
    options: FormOptions,
    form: RequestedForm,
    styles: Styles,
    y: Annotated[
        service.Score, Query(description="The score: of the last 100 training episodes, or the best return.")
    ] = "score",
    group_by: Annotated[
        Literal["seed"] | None,
        Query(description="Draw each run in the style that its group has in `/figures/seed_curve`."),
    ] = None,
) -> Response:
    """A score of runs against one of their settings."""
    figure = service.draw_scatter(session, run, x, y, options, styles, grouped=group_by == "seed")
    return _answer(request, figure, form, "scatter")


@router.get("/diagnostics")
def list_diagnostics(
    run: Annotated[Ulid, Query(description="Run id.")], principal: Viewer, session: ReadSession
) -> Panels:
    """The diagnostics panels that a run has data for; empty if it has none."""
    panels = service.diagnostic_panels(session, run)
    return Panels(
        items=[PanelOut(id=panel.id, title=panel.title, metrics=list(panel.names)) for panel in panels]
    )


@router.get("/diagnostic", response_model=None, responses=FORMATS)
def diagnostic(
    request: Request,
    run: Annotated[Ulid, Query(description="Run id.")],
    panel: Annotated[Text, Query(description="An id from `GET /figures/diagnostics`.")],
    principal: Viewer,
    session: ReadSession,
    axes: SmoothedAxes,
    options: FormOptions,
    form: RequestedForm,
    had: Had,
) -> Response:
    """One panel of a run's diagnostics."""
    if panel not in BY_ID:
        raise Invalid.field("panel", f"unknown panel {quoted(panel)}; use one of {', '.join(BY_ID)}")
    name = FigureName("diagnostic", panel)
    wanted = FigureRequest([run], [name], [], axes, DEFAULT_SPREAD, options, had.since, had.with_layout)
    return _answer_drawn(request, session, wanted, form, panel)


@router.get("/episode_trace", response_model=None, responses=FORMATS)
def episode_trace(
    request: Request,
    episode: Annotated[Ulid, Query(description="Episode id.")],
    principal: Viewer,
    session: ReadSession,
    artifacts: Artifacts,
    options: FormOptions,
    form: RequestedForm,
    panel: Annotated[
        list[TracePanel],
        Query(
            min_length=1,
            max_length=len(get_args(TracePanel)),
            description="Panels, top to bottom: rewards, V with the discounted return (max Q of agents that "
            "learn Q), V minus the discounted return, and the policy (Q, or continuous actions). Those "
            "without anything to draw are left out.",
        ),
    ] = list(TRACE_PANELS),  # noqa: B006 - FastAPI copies it
    points: MaxPoints = 1000,
) -> Response:
    """Reward, value and policy over a recorded episode, whose agent steps count from 1."""
    figure = service.draw_episode_trace(session, artifacts, episode, panel, points, options)
    return _answer(request, figure, form, "episode_trace")


@router.get("/recording", response_model=None, responses=FORMATS)
def recording_rewards(
    request: Request,
    recording: Annotated[Ulid, Query(description="Recording id.")],
    principal: Viewer,
    session: ReadSession,
    options: FormOptions,
    form: RequestedForm,
    points: MaxPoints = 1000,
) -> Response:
    """Reward over a game that people have played, whose agent steps count from 1."""
    figure = service.draw_recording(session, recording, points, options)
    return _answer(request, figure, form, "recording")


@router.get("/branch", response_model=None, responses=FORMATS)
def branch_fan(
    request: Request,
    branch: Annotated[Ulid, Query(description="Branch id.")],
    principal: Viewer,
    session: ReadSession,
    artifacts: Artifacts,
    options: FormOptions,
    form: RequestedForm,
    returns: Annotated[
        Returns,
        Query(
            description="`discounted`: of the rewards that the agent learns from, which V predicts. `true`: "
            "of true rewards, undiscounted."
        ),
    ] = "discounted",
) -> Response:
    """The continuations of a branch that has been played, beside the episode itself and the agent's V."""
    figure = service.draw_branch(session, artifacts, branch, returns, options)
    return _answer(request, figure, form, "branch")


def _answer_drawn(
    request: Request, session: Session, wanted: FigureRequest, form: FigureForm, name: str
) -> Response:
    if form.format != "json" and wanted.since:
        raise Invalid.field("since_revision", "only JSON can be a part of a figure; leave it out")
    drawn = service.draw(session, wanted)
    [figure] = drawn.figures
    if form.format != "json":
        about = service.caption_of(session, wanted, form.arranged(figure)) if form.has_caption else None
        return file_response(figure, form, name, about)
    [document] = drawn.documents()
    return _json(document) if drawn.updated else conditional_response(request, orjson.dumps(document))


def _answer(request: Request, figure: Figure, form: FigureForm, name: str) -> Response:
    if form.format != "json":
        return file_response(figure, form, name)
    return conditional_response(request, orjson.dumps(figure.document()))


def _json(document: dict[str, Any]) -> Response:
    return Response(orjson.dumps(document), media_type="application/json")
