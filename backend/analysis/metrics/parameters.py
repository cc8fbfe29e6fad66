"""Query parameters that charts and figures share: axes, smoothing, and what is drawn of several seeds.

Apart from `endpoints`, because the routes of figures depend on them too.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Query, Request
from pydantic import Field
from starlette.datastructures import QueryParams

from backend.analysis.metrics.axes import MAX_X, Axes
from backend.analysis.metrics.charts import LARGE_BUCKETS
from backend.analysis.metrics.schemas import X
from backend.analysis.metrics.smoothing import MAX_WEIGHT, Smoothing
from backend.http.dependencies import get_state, principal_of
from backend.platform.errors import Invalid
from backend.statistics.grouping import Centre, Interval, Spread

DEFAULT_WEIGHT = 0.9
"""Of a moving average over points of figures."""


DEFAULT_POINTS = 1000
_SOURCES_OF_ALL = 32
"""Sources that a request for all of them is taken to have."""


async def _large_turn(request: Request) -> AsyncIterator[None]:
    """Held by a request for a large chart until it is sent: its memory is free then."""
    if n_buckets(request.query_params) <= LARGE_BUCKETS:
        yield
        return
    async with get_state(request).limits.large_charts.turn(principal_of(request).id):
        yield


def n_buckets(given: QueryParams) -> int:
    """About how many buckets a request for charts has, by its parameters, which are not validated yet.

    Sources that are not named count as one, and `*` as 32.
    """
    sources, points = given.getlist("source"), given.get("points", "")
    n = int(points[:20]) if points.isdecimal() else DEFAULT_POINTS
    n *= _SOURCES_OF_ALL if "*" in sources else max(1, len(sources))
    for names in (("run",), ("metric", "formula"), ("figure",)):
        n *= max(1, sum(len(given.getlist(name)) for name in names))
    return n


def _axes(default: Smoothing | None) -> Callable[..., AsyncIterator[Axes]]:
    async def requested(
        request: Request,
        large: Annotated[None, Depends(_large_turn)],
        x: Annotated[
            X,
            Query(
                description="Unit of the horizontal axis. `updates` are interpolated between checkpoints; "
                "`clock_time_s` counts from the start of training, including evaluations and interruptions."
            ),
        ] = "agent_steps",
        points: Annotated[
            int, Query(ge=1, le=10_000, description="Maximum number of points per series.")
        ] = DEFAULT_POINTS,
        smooth: Annotated[
            float | None,
            Query(
                ge=0,
                le=MAX_WEIGHT,
                description="Weight of the past in the moving average over points; 0 for no smoothing. "
                f"Default of `smoothing=points`: {DEFAULT_WEIGHT if default else 0:g}.",
            ),
        ] = None,
        smoothing: Annotated[
            Smoothing | None,
            Query(
                description="`window`: mean of a window of x, the last `scale` of it, which figures draw in "
                "the middle of its points; `ema`: exponential moving average over x, with the time constant "
                "`scale`; `points`: over points, with the weight `smooth`. Default: "
                f"`{default or 'points'}`, with `smooth` `points`."
            ),
        ] = None,
        scale: Annotated[
            float | None,
            Query(
                gt=0,
                le=MAX_X,
                allow_inf_nan=False,
                description="In units of x, for `window` and `ema`; default: of each run the largest of 1, 2 "
                "and 5 times a power of ten that is at most a twentieth of its own length.",
            ),
        ] = None,
        had_scale: Annotated[
            list[Annotated[float, Field(ge=0, le=MAX_X, allow_inf_nan=False)]],
            Query(
                max_length=100,
                description="With `since_revision` and no `scale`: the `scales` of the data that the client "
                "has. Where others are due by now, or without them, the answer is whole.",
            ),
        ] = [],  # noqa: B006
        x_from: Annotated[
            float | None,
            Query(
                ge=0,
                le=MAX_X,
                allow_inf_nan=False,
                description="Lowest position on the horizontal axis, in units of `x`; default: the "
                "first point.",
            ),
        ] = None,
        x_to: Annotated[
            float | None,
            Query(
                ge=0,
                le=MAX_X,
                allow_inf_nan=False,
                description="Highest position on the horizontal axis, in units of `x`; default: the "
                "last point.",
            ),
        ] = None,
    ) -> AsyncIterator[Axes]:
        kind = smoothing or ("points" if smooth is not None or default is None else default)
        weight = DEFAULT_WEIGHT if default and smooth is None else smooth or 0.0
        low, high = x_from or 0.0, MAX_X if x_to is None else x_to
        if low >= high:
            raise Invalid.field("x_to", f"must be above x_from: got {low:g} to {high:g}")
        span = None if x_from is None and x_to is None else (low, high)
        async with get_state(request).limits.charts.turn(principal_of(request).id):
            if kind == "points":
                yield Axes(x, points, weight, kind, span=span)
            else:
                yield Axes(x, points, 0.0, kind, scale, span, had_scale)

    return requested


def _spread(default: Interval) -> Callable[..., Awaitable[Spread]]:
    async def chosen(
        interval: Annotated[
            Interval,
            Query(
                description="Band over the runs of a group: the 95 % interval of the centre (`ci95`), one "
                "standard deviation (`sd`) or error (`se`), the percentile bootstrap of the centre from five "
                "runs on (`bootstrap`), or the lowest to the highest run (`min_max`)."
            ),
        ] = default,
        centre: Annotated[
            Centre | None,
            Query(
                description="Their centre line; default: the median, with `sd` and `se` the mean, with "
                "`bootstrap` the interquartile mean."
            ),
        ] = None,
        seeds: Annotated[bool, Query(description="Also each run, in figures as a thin line.")] = False,
    ) -> Spread:
        try:
            return Spread.chosen(centre, interval, seeds=seeds)
        except ValueError as error:
            raise Invalid.field("interval", str(error)) from None

    return chosen


RequestedAxes = Annotated[Axes, Depends(_axes(None), scope="function")]
SmoothedAxes = Annotated[Axes, Depends(_axes("window"), scope="function")]
"""With smoothing by default."""
ChosenSpread = Annotated[Spread, Depends(_spread("ci95"))]
DrawnSpread = Annotated[Spread, Depends(_spread("se"))]
"""Of figures: by default the mean ± its standard error, as most papers draw it."""
