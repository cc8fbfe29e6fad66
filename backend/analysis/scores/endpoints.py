"""The best scores of finished runs beside published ones."""

from functools import lru_cache
from typing import Annotated, Any

import orjson
from fastapi import Path, Query, Request, Response

from backend.analysis.scores import service
from backend.analysis.scores.schemas import FigureId, Scores, ScoresFigure
from backend.drawing.palette import Theme
from backend.http.access import Viewer
from backend.http.dependencies import ReadSession
from backend.http.figures import FORMATS, RequestedForm, file_response
from backend.http.routing import ResourceRouter
from backend.http.streaming import ListTurn
from backend.http.transfer import JsonDocument
from backend.platform.text import Text

router = ResourceRouter(prefix="/scores", tags=["scores"])

FIGURE_FORMATS: dict[int | str, dict[str, Any]] = {200: FORMATS[200] | {"model": ScoresFigure}}
Protocol = Annotated[
    Text | None,
    Query(
        max_length=50,
        description="Protocol of environments that have it, the others have their own; default: the one with "
        "the most scored runs.",
    ),
]
Column = Annotated[
    list[Text],
    Query(max_length=100, description="Ids of the columns that are shown; default: all."),
]
MinSeeds = Annotated[
    int,
    Query(ge=1, le=100, description="How many runs, each with a seed of its own, a score needs at least."),
]


@router.get("", response_model=Scores)
def list_scores(
    request: Request,
    principal: Viewer,
    turn: ListTurn,
    session: ReadSession,
    protocol: Protocol = None,
    column: Column = [],  # noqa: B006
    min_seeds: MinSeeds = 1,
) -> Response:
    """Environments as rows, algorithms and published agents as columns: the best score of each algorithm by
    its finished runs, with seeds and interval, beside random, human and published scores of the same
    protocol. The response has an `ETag`."""
    return _document(service.read_table(session, protocol, column, min_seeds)).respond(request)


@lru_cache(maxsize=4)
def _document(table: service.ScoreTable) -> JsonDocument:
    return JsonDocument.of(table.scores)


@router.get("/figures/{figure_id}", response_model=None, responses=FIGURE_FORMATS)
def read_scores_figure(
    figure_id: Annotated[
        FigureId,
        Path(description="`profile`: share of runs above each human-normalised score; `optimality_gap`."),
    ],
    principal: Viewer,
    turn: ListTurn,
    session: ReadSession,
    form: RequestedForm,
    protocol: Protocol = None,
    column: Column = [],  # noqa: B006
    min_seeds: MinSeeds = 1,
    theme: Annotated[Theme, Query(description="Colours for light or for dark pages.")] = "light",
    width: Annotated[int | None, Query(ge=200, le=4000, description="Width in CSS pixels, if known.")] = None,
) -> Response:
    """Performance profiles or optimality gaps (Agarwal et al. 2021) of the algorithms of the table, over the
    environments in which each of them that has a score has one."""
    table = service.read_table(session, protocol, column, min_seeds)
    if form.format != "json":
        drawn = service.draw(table, figure_id, theme="light", width_px=width)
        return file_response(drawn.figure, form, figure_id, drawn.text)
    drawn = service.draw(table, figure_id, theme=theme, width_px=width)
    # For a page, which has a heading of its own.
    drawn.figure.layout.pop("title", None)
    drawn.figure.layout["margin"] = drawn.figure.layout["margin"] | {"t": 32}
    answer = {
        "figure": drawn.figure.document() | {"revisions": []},
        "caption": drawn.caption,
        "environments": drawn.environments,
        "optimality_gaps": drawn.optimality_gaps,
    }
    return Response(orjson.dumps(answer), media_type="application/json")
