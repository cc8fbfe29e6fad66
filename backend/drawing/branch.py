"""The fan of a branch: returns of an episode's continuations over their decisions, beside the agent's V."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from backend.drawing.figure import Figure
from backend.drawing.palette import Theme, colours, look
from backend.drawing.theme import faint, ground, layout, muted, plain_text
from backend.statistics.columns import Array
from backend.statistics.means import t_975

_NARROW_PX = 500
_NARROW_HEIGHT_PX = 480
"""Below `_NARROW_PX` the legend has a row for each line, which takes as much height as the plot."""
_MAX_POINTS = 400
"""Maximum number of points of a line; a longer line is drawn at this many decisions, the last among them."""


@dataclass(frozen=True)
class FanLine:
    """One continuation."""

    returns: Array
    """(T + 1,) return of the first t decisions, t = 0, …, T."""
    total: float
    """Whole return: the last of `returns`, plus the discounted V of the last state if `is_bootstrapped`."""
    is_bootstrapped: bool
    """Whether `total` includes V of the last state."""


@dataclass(frozen=True)
class PersonLine:
    """How someone went on from the decision in a play session."""

    who: str
    returns: Array
    """As of a `FanLine`."""
    finished: bool
    """Whether they played to the end of the game."""


def branch_figure(
    lines: Sequence[FanLine],
    episode: FanLine,
    people: Sequence[PersonLine] = (),
    *,
    value: float | None,
    value_name: str,
    y: str,
    title: str,
    subtitle: str,
    theme: Theme = "light",
    width_px: int | None = None,
) -> Figure:
    """Return so far of each continuation, their mean with its standard error, the episode's own, and V.

    In the mean, a continuation that has ended keeps its last return. A dot marks the end of each continuation
    and its whole return, `FanLine.total`. V is compared with the mean of the dots.

    Args:
        lines: the continuations, at least one.
        episode: the recorded episode from the decision on.
        people: games that people have played from the decision on; no mean counts them.
        value: what the agent expected: a horizontal line; None if it expected another kind of return.
        value_name: such as `V`.
        y: title of the axis of returns.
        title: title of the figure.
        subtitle: how it was played.
        theme: light or dark.
        width_px: width for which the title is wrapped.
    """
    figure = Figure(layout(title, theme, width_px, subtitle))
    blue, orange, *_ = colours(theme)
    n = max(len(line.returns) for line in lines)
    steps = _drawn(n)
    together = np.array([_held(line.returns, n)[steps] for line in lines])
    x: list[Array] = []
    ys: list[Array] = []
    gap = np.array([np.nan])
    for line in lines:
        drawn = _drawn(len(line.returns))
        x += [drawn, gap]
        ys += [line.returns[drawn], gap]
    hover = "%{y:.4~g}<extra>%{fullData.name}</extra>"
    figure.add_scatter(
        x=np.concatenate(x),
        y=np.concatenate(ys),
        name=f"{len(lines)} continuation{'s' * (len(lines) > 1)}",
        mode="lines",
        line={"color": faint(blue, 0.3), "width": 1},
        hoverinfo="skip",
        meta={"kind": "line"},
    )
    if len(lines) > 1:
        mean = together.mean(0)
        error = together.std(0, ddof=1) / np.sqrt(len(lines))
        figure.add_scatter(
            x=np.concatenate([steps, steps[::-1]]),
            y=np.concatenate([mean + error, (mean - error)[::-1]]),
            name="standard error",
            mode="lines",
            line={"width": 0},
            fill="toself",
            fillcolor=faint(blue, 0.25),
            hoverinfo="skip",
            showlegend=False,
            meta={"kind": "range"},
        )
        figure.add_scatter(
            x=steps,
            y=mean,
            name="mean so far ± standard error",
            mode="lines",
            line={"color": blue, "width": 2.5},
            hovertemplate=hover,
            meta={"kind": "line"},
        )
    own = _drawn(min(len(episode.returns), n))
    figure.add_scatter(
        x=own,
        y=episode.returns[own],
        name="the episode itself",
        mode="lines",
        line={"color": orange, "width": 3},
        hovertemplate=hover,
        meta={"kind": "line"},
    )
    for style, person in enumerate(people, 2):
        looks = look(style, theme)
        drawn = _drawn(min(len(person.returns), n))
        figure.add_scatter(
            x=drawn,
            y=person.returns[drawn],
            name=plain_text(
                f"{person.who} ({'to the end' if person.finished else 'stopped before the end'})"
            ),
            mode=looks.mode,
            marker=looks.marker,
            line={"color": looks.colour, "width": 2},
            hovertemplate=hover,
            meta={"kind": "line"},
        )
    for is_bootstrapped, name, fill in (
        (False, "return at its end", blue),
        (True, f"return with {value_name} of its last state", ground(theme)),
    ):
        ends = [line for line in lines if line.is_bootstrapped == is_bootstrapped]
        if ends:
            figure.add_scatter(
                x=[len(line.returns) - 1 for line in ends],
                y=[line.total for line in ends],
                name=name,
                mode="markers",
                marker={"size": 6, "color": fill, "line": {"color": blue, "width": 1}},
                hovertemplate=hover,
                meta={"kind": "points"},
            )
    if value is not None:
        if len(lines) > 1:
            _add_mean_of_whole_returns(figure, lines, value_name, 1.03 * (n - 1), blue)
        figure.add_scatter(
            x=[0, 1.03 * (n - 1)],
            y=[value, value],
            name=f"{plain_text(value_name)} at the decision",
            mode="lines",
            line={"color": muted(theme), "width": 2, "dash": "dash"},
            hovertemplate=hover,
            meta={"kind": "reference"},
        )
    figure.layout |= {
        "hovermode": "closest",
        "showlegend": True,
        "xaxis": {"title": {"text": "Decisions since the branch"}, "tickformat": "~s", "rangemode": "tozero"},
        "yaxis": {"title": {"text": y}},
    }
    if width_px is not None and width_px < _NARROW_PX:
        figure.layout["height"] = _NARROW_HEIGHT_PX
    return figure


def _add_mean_of_whole_returns(
    figure: Figure, lines: Sequence[FanLine], value_name: str, x: float, colour: str
) -> None:
    """Draw, right of the fan, what V predicts: the mean of the whole returns, and its 95 % interval."""
    totals = np.array([line.total for line in lines])
    half = t_975(len(totals) - 1) * float(totals.std(ddof=1) / np.sqrt(len(totals)))
    figure.add_scatter(
        x=[x],
        y=[float(totals.mean())],
        error_y={"type": "data", "array": [half], "color": colour, "thickness": 2, "width": 5},
        name=f"mean whole return, 95 %: what {plain_text(value_name)} predicts",
        mode="markers",
        marker={"size": 9, "symbol": "diamond", "color": colour},
        hovertemplate="%{y:.4~g}<extra>%{fullData.name}</extra>",
        meta={"kind": "points"},
    )


def _drawn(n: int) -> Array:
    """The numbers of at most `_MAX_POINTS` of n decisions, the first and the last among them."""
    return np.unique(np.linspace(0, n - 1, min(n, _MAX_POINTS)).round().astype(np.int64))


def _held(returns: Array, n: int) -> Array:
    """Returns of n decisions: the last one is kept after the end."""
    return np.concatenate([returns, np.full(n - len(returns), returns[-1])])
