"""Query parameters that charts and figures share: axes, smoothing, and what is drawn of several seeds."""

from collections.abc import AsyncIterator, Callable
from typing import Annotated

from fastapi import Depends, Query

from backend.errors import Invalid
from backend.http.dependencies import AppStateDep
from backend.metrics.charts import Axes
from backend.metrics.grouping import Centre, Interval, Spread
from backend.metrics.schemas import X
from backend.metrics.smoothing import MAX_WEIGHT, Smoothing

_MAX_X = 1e15


def _axes(default_smooth: float) -> Callable[..., AsyncIterator[Axes]]:
    async def requested(
        state: AppStateDep,
        x: Annotated[
            X,
            Query(
                description="Unit of the horizontal axis. `updates` are interpolated between checkpoints; "
                "`clock_time_s` counts from the start of training, including evaluations and interruptions."
            ),
        ] = "agent_steps",
        points: Annotated[
            int, Query(ge=1, le=10_000, description="Maximum number of points per series.")
        ] = 1000,
        smooth: Annotated[
            float,
            Query(ge=0, le=MAX_WEIGHT, description="Weight of the past in the moving average over points."),
        ] = default_smooth,
        smoothing: Annotated[
            Smoothing,
            Query(
                description="`points`: exponential moving average over points, with the weight `smooth`; "
                "`ema`: over x, with the time constant `scale`; `window`: mean of the last `scale` of x."
            ),
        ] = "points",
        scale: Annotated[
            float | None,
            Query(gt=0, le=_MAX_X, allow_inf_nan=False, description="In units of x, for `ema` and `window`."),
        ] = None,
        x_from: Annotated[
            float | None,
            Query(
                ge=0,
                le=_MAX_X,
                allow_inf_nan=False,
                description="Lowest position on the horizontal axis, in units of `x`; default: the "
                "first point.",
            ),
        ] = None,
        x_to: Annotated[
            float | None,
            Query(
                ge=0,
                le=_MAX_X,
                allow_inf_nan=False,
                description="Highest position on the horizontal axis, in units of `x`; default: the "
                "last point.",
            ),
        ] = None,
    ) -> AsyncIterator[Axes]:
        if smoothing != "points" and scale is None:
            raise Invalid.field("scale", f"missing: smoothing={smoothing} needs a scale in units of x")
        low, high = x_from or 0.0, _MAX_X if x_to is None else x_to
        if low >= high:
            raise Invalid.field("x_to", f"must be above x_from: got {low:g} to {high:g}")
        span = None if x_from is None and x_to is None else (low, high)
        async with state.limits.charts.turn(""):
            yield Axes(x, points, smooth if smoothing == "points" else 0.0, smoothing, scale or 0.0, span)

    return requested


def _spread(
    interval: Annotated[Interval, Query(description="Band over the runs of a group.")] = "ci95",
    centre: Annotated[
        Centre | None,
        Query(description="Their centre line; default: the median, with `sd` and `se` the mean."),
    ] = None,
) -> Spread:
    return Spread.chosen(centre, interval)


RequestedAxes = Annotated[Axes, Depends(_axes(0.0), scope="function")]
SmoothedAxes = Annotated[Axes, Depends(_axes(0.9), scope="function")]
"""With smoothing by default."""
ChosenSpread = Annotated[Spread, Depends(_spread)]
