"""Figures for Plotly, or as files: whole, or what of them a client lacks."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

import orjson
from fastapi import Depends, Query, Request, Response

from backend.analysis.comparisons.schemas import At
from backend.analysis.comparisons.schemas import Score as ComparedScore
from backend.analysis.figures import service
from backend.analysis.figures.lines import LinesRequest, draw_lines
from backend.analysis.figures.scatter import Score, draw_scatter
from backend.analysis.figures.schemas import FiguresOut, LinesOut, Palette, PanelOut, Panels, ScoresOut
from backend.analysis.figures.score_panels import ScoreKind, ScoresRequest, draw_scores
from backend.analysis.figures.service import FigureName, FigureRequest
from backend.analysis.metrics.parameters import DrawnSpread, SmoothedAxes
from backend.drawing.catalogue import EPISODE_RETURN
from backend.drawing.curve import Band
from backend.drawing.diagnostics import BY_ID
from backend.drawing.figure import FigureOptions
from backend.drawing.palette import COLOUR_NAMES, IN_ORDER, N_STYLES, SYMBOLS, WantedStyles, all_colours
from backend.http.access import Viewer
from backend.http.dependencies import ReadSession
from backend.http.figures import FORMATS, FormOptions, Options, RequestedForm, figure_response, file_response
from backend.http.pages import Ulid
from backend.http.routing import ResourceRouter
from backend.http.streaming import ListTurn
from backend.http.transfer import conditional_response
from backend.platform.errors import Invalid
from backend.platform.text import Text
from backend.specs.problems import quoted
from backend.statistics.grouping import Spread

router = ResourceRouter(prefix="/figures", tags=["figures"])


SCORES: dict[int | str, dict[str, Any]] = {200: FORMATS[200] | {"model": ScoresOut}}
LINES: dict[int | str, dict[str, Any]] = {200: FORMATS[200] | {"model": LinesOut}}
DEFAULT_SPREAD = Spread.chosen(None, "se")
Runs = Annotated[list[Ulid], Query(min_length=1, max_length=100, description="Run ids.")]
Metric = Annotated[Text, Query(description="Name of the metric, such as `rollout/episode_return`.")]


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
Styles = Annotated[WantedStyles, Depends(_styles)]
Had = Annotated[_Had, Depends(_had)]
Sources = Annotated[list[Text], Query(max_length=100, description="As for `GET /series`.")]


@dataclass(frozen=True)
class _Query:
    """What all figures of runs are requested with."""

    run: Runs
    axes: SmoothedAxes
    styles: Styles
    had: Had
    environment: OneEnvironment = None

    def figures(
        self,
        names: Sequence[FigureName],
        options: FigureOptions,
        sources: Sequence[str] = (),
        spread: Spread = DEFAULT_SPREAD,
        band: Band = "auto",
    ) -> FigureRequest:
        """The request of these figures."""
        return FigureRequest(
            self.run,
            names,
            sources,
            self.axes,
            spread,
            options,
            self.had.since,
            self.had.with_layout,
            self.styles,
            band,
            self.environment,
        )


@dataclass(frozen=True)
class _Export:
    """The form in which one figure is answered."""

    request: Request
    session: ReadSession
    options: FormOptions
    form: RequestedForm

    def answer(self, wanted: FigureRequest, file_name: str) -> Response:
        """The only figure of a request."""
        if self.form.format != "json" and wanted.since:
            raise Invalid.field("since_revision", "only JSON can be a part of a figure; leave it out")
        drawn = service.draw(self.session, wanted)
        [figure] = drawn.figures
        if self.form.format != "json":
            shown = self.form.arranged(figure)
            about = service.caption_of(self.session, wanted, shown) if self.form.has_caption else None
            return file_response(figure, self.form, file_name, about)
        [document] = drawn.documents()
        if drawn.updated:
            return _json(document)
        return conditional_response(self.request, orjson.dumps(document))


Wanted = Annotated[_Query, Depends()]
Export = Annotated[_Export, Depends()]


@router.get("", response_model=FiguresOut)
def read_figures(
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
    query: Wanted,
    spread: DrawnSpread,
    options: Options,
    source: Sources = [],  # noqa: B006
    band: AroundRuns = "auto",
) -> Response:
    """Several figures of the same runs, for a page that shows them."""
    names = [FigureName.parse(name) for name in figure]
    return _json(
        {"items": service.draw(session, query.figures(names, options, source, spread, band)).documents()}
    )


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
def learning_curve(principal: Viewer, query: Wanted, export: Export, band: AroundRuns = "auto") -> Response:
    """Returns over training, with evaluations, published scores, checkpoints, restarts, setting changes,
    notes and symptoms."""
    name = FigureName("learning_curve", EPISODE_RETURN)
    return export.answer(query.figures([name], export.options, band=band), "learning_curve")


@router.get("/curve", response_model=None, responses=FORMATS)
def curve(
    metric: Metric,
    principal: Viewer,
    query: Wanted,
    export: Export,
    source: Sources = [],  # noqa: B006
    band: AroundRuns = "auto",
) -> Response:
    """Any metric over training."""
    name = FigureName("curve", metric)
    return export.answer(query.figures([name], export.options, source, band=band), "curve")


@router.get("/seed_curve", response_model=None, responses=FORMATS)
def seed_curve(
    principal: Viewer,
    query: Wanted,
    export: Export,
    spread: DrawnSpread,
    metric: Metric = EPISODE_RETURN,
    source: Sources = [],  # noqa: B006
) -> Response:
    """Runs that differ in their seed alone as one curve with mean and band."""
    name = FigureName("seed_curve", metric)
    return export.answer(query.figures([name], export.options, source, spread), "seed_curve")


@router.get("/lines", response_model=None, responses=LINES)
def lines(
    request: Request,
    principal: Viewer,
    session: ReadSession,
    query: Wanted,
    spread: DrawnSpread,
    options: FormOptions,
    form: RequestedForm,
    metric: Annotated[
        list[Text], Query(max_length=10, description="Names of metrics, drawn before the formulas.")
    ] = [],  # noqa: B006
    formula: Annotated[
        list[Text],
        Query(
            max_length=10,
            description="Formulas of metrics, such as `loss/policy / loss/value` or "
            "`ema(rollout/episode_return, 0.9)`: of `+`, `-`, `*` and `/` (with spaces: a slash without any "
            "belongs to a name), parentheses, numbers, `ema(…, weight)`, `diff(…)` and `log(…)`; names with "
            "other characters than letters, digits, `_`, `.` and `/` stand in backticks or double quotes. At "
            "most 200 characters each, and 10 metrics and formulas together.",
        ),
    ] = [],  # noqa: B006
    x_metric: Annotated[
        Text | None,
        Query(description="Name of the metric of the horizontal axis: its value at the same agent steps."),
    ] = None,
    group_by: Annotated[
        Literal["seed"] | None,
        Query(description="Draw runs that differ in their seed alone as one line with a band."),
    ] = None,
    band: AroundRuns = "auto",
) -> Response:
    """Several metrics or formulas in one chart, over training or against another metric. With
    `since_revision`, lines of formulas and over another metric are whole."""
    if form.format != "json" and query.had.since:
        raise Invalid.field("since_revision", "only JSON can be a part of a figure; leave it out")
    if x_metric is not None and (query.axes.x != "agent_steps" or query.axes.span is not None):
        field = "x" if query.axes.x != "agent_steps" else "x_from"
        raise Invalid.field(field, "the horizontal axis is that of x_metric; leave this out")
    drawn = draw_lines(
        session,
        LinesRequest(
            query.run,
            metric,
            formula,
            query.axes,
            options,
            x_metric,
            spread if group_by == "seed" else None,
            query.had.since,
            query.had.with_layout,
            query.styles,
            band,
            query.environment,
        ),
    )
    if form.format != "json":
        return file_response(drawn.figure, form, "lines")
    missing = [asdict(line) for line in drawn.missing]
    document = drawn.figure.document() | {"revisions": drawn.revisions, "missing": missing}
    return _json(document) if drawn.is_update else conditional_response(request, orjson.dumps(document))


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
        Score, Query(description="The score: of the last 100 training episodes, or the best return.")
    ] = "score",
    group_by: Annotated[
        Literal["seed"] | None,
        Query(description="Draw each run in the style that its group has in `/figures/seed_curve`."),
    ] = None,
) -> Response:
    """A score of runs against one of their settings."""
    figure = draw_scatter(session, run, x, y, options, styles, grouped=group_by == "seed")
    return figure_response(request, figure, form, "scatter")


@router.get("/scores", response_model=None, responses=SCORES)
def scores(
    request: Request,
    run: Runs,
    kind: Annotated[
        ScoreKind,
        Query(
            description="`bars`: the median of each config with its interval; `strips`: a dot for each seed; "
            "`heatmap`: interquartile means over two settings; `importance`: the share of the variance of "
            "scores that each setting explains, and the seed."
        ),
    ],
    principal: Viewer,
    turn: ListTurn,
    session: ReadSession,
    options: FormOptions,
    form: RequestedForm,
    styles: Styles,
    score: Annotated[ComparedScore, Query(description="As for `GET /comparisons`.")] = "training",
    at: Annotated[At, Query(description="As for `GET /comparisons`.")] = "common",
    protocol: Annotated[Text | None, Query(max_length=50, description="As for `GET /comparisons`.")] = None,
    environment: Annotated[
        Text | None,
        Query(description="Id of an environment: only the runs of it; needed where the runs are of several."),
    ] = None,
    setting: Annotated[
        Text | None,
        Query(
            description="Of a heat map, the setting of the columns; of strips, the setting over which they "
            "are drawn, in place of a row for each config. Such as `config.learning_rate`."
        ),
    ] = None,
    other_setting: Annotated[
        Text | None, Query(description="Of a heat map, the setting of the rows.")
    ] = None,
) -> Response:
    """Scores of the configs of a comparison, as `GET /comparisons` has them."""
    if kind == "heatmap" and form.format not in ("json", "html"):
        raise Invalid.field("format", f"a heat map has no {form.format}: use html or json, or kind=strips")
    drawn = draw_scores(
        session,
        ScoresRequest(run, kind, options, score, at, protocol, environment, setting, other_setting, styles),
    )
    if form.format != "json":
        return file_response(drawn.figure, form, kind)
    document = drawn.figure.document() | {
        "n_runs": drawn.n_runs,
        "n_left_out": drawn.n_left_out,
        "notes": drawn.notes,
        "shares": [asdict(share) for share in drawn.shares],
    }
    return conditional_response(request, orjson.dumps(document))


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
    run: Annotated[Ulid, Query(description="Run id.")],
    panel: Annotated[Text, Query(description="An id from `GET /figures/diagnostics`.")],
    principal: Viewer,
    axes: SmoothedAxes,
    had: Had,
    export: Export,
) -> Response:
    """One panel of a run's diagnostics."""
    if panel not in BY_ID:
        raise Invalid.field("panel", f"unknown panel {quoted(panel)}; use one of {', '.join(BY_ID)}")
    name = FigureName("diagnostic", panel)
    return export.answer(_Query([run], axes, IN_ORDER, had).figures([name], export.options), panel)


def _json(document: dict[str, Any]) -> Response:
    return Response(orjson.dumps(document), media_type="application/json")
