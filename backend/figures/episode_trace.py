"""One episode step by step: reward, value estimate and policy."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from backend.figures.figure import Figure
from backend.figures.palette import Theme, colours, look
from backend.figures.theme import layout, muted
from backend.metrics.chunks import Array
from backend.metrics.rollups import bucket_rows, last_rows

_PANELS = tuple({"xaxis": f"x{panel}", "yaxis": f"y{panel}"} for panel in ("", "2", "3"))
"""The axes of the panels, top to bottom, as traces name them."""
_DOMAINS = ([0.78, 1], [0.412, 0.72], [0, 0.352])
"""Bottom and top of the panels: 25, 35 and 40 % of the height without the gaps of 6 %."""


def discount(rewards: Array, gamma: float, clip: float | None) -> Array:
    """The discounted return R_t = r_t + gamma * R_{t+1}, of rewards clipped as in training."""
    learned = np.clip(rewards, -clip, clip) if clip is not None else rewards
    returns = np.empty(len(rewards))
    total = 0.0
    for t in range(len(rewards) - 1, -1, -1):
        total = float(learned[t]) + gamma * total
        returns[t] = total
    return returns


def episode_trace_figure(
    rewards: Array,
    values: Array,
    policies: Array,
    action_names: Sequence[str],
    *,
    numbers: Array | None = None,
    returns: Array | None = None,
    lives: Array | None = None,
    action_values: bool = False,
    title: str = "Episode",
    max_points: int = 1000,
    theme: Theme = "light",
    width_px: int | None = None,
) -> Figure:
    """Three panels over the agent steps of the episode.

    Args:
        rewards: (T,) true reward of each agent step.
        values: (T,) V(s_t).
        policies: (T, A) pi(a | s_t); A may be 0.
        action_names: A names, or D names of action components.
        numbers: (T, D) continuous actions, shown instead of the policy.
        returns: (T,), as from `discount`, drawn behind V.
        lives: (T,) remaining lives; a lost life is marked by a dotted line.
        action_values: whether `policies` are Q(s_t, a) and `values` their maximum.
        title: title of the figure.
        max_points: a longer episode is drawn in buckets: rewards are summed, the rest is averaged.
        theme: light or dark.
        width_px: width for which the title is wrapped.
    """
    length = len(rewards)
    size = bucket_rows(length, max_points)
    steps = last_rows(length, size).tolist()
    lost = (np.flatnonzero(np.diff(lives) < 0) + 1).tolist() if lives is not None else []
    subtitle = [f"{length:,} agent steps"] + (["dotted: life lost"] if lost else [])
    figure = Figure(layout(title, theme, width_px, " · ".join(subtitle)))
    blue, orange, *_ = colours(theme)
    hover = {"mode": "lines", "hovertemplate": "%{y:.4~g}"}
    figure.add_scatter(
        x=steps,
        y=_sum_each(rewards, size),
        name="Reward" if size == 1 else f"Reward in {size} steps",
        line={"color": orange, "width": 1, "shape": "hvh"},
        **_PANELS[0],
        **hover,
    )
    if returns is not None:
        figure.add_scatter(
            x=steps,
            y=_average_each(returns, size),
            name="Discounted return",
            line={"color": muted(theme), "width": 1, "dash": "dot"},
            **_PANELS[1],
            **hover,
        )
    figure.add_scatter(
        x=steps,
        y=_average_each(values, size),
        name="max Q" if action_values else "V",
        line={"color": blue, "width": 2},
        **_PANELS[1],
        **hover,
    )
    drawn = policies if numbers is None else numbers
    shares = numbers is None and not action_values
    # Not in the colours of reward and V, which the legend names too.
    for action, name in enumerate(action_names if drawn.size else ()):
        looks = look(2 + action, theme)
        line = {"color": looks.colour, "width": 0 if shares else 2}
        shown = {"stackgroup": "pi"} if shares else {"mode": looks.mode, "marker": looks.marker}
        figure.add_scatter(
            x=steps,
            y=_average_each(drawn[:, action], size),
            name=name,
            line=line,
            **_PANELS[2],
            **hover | shown,
        )
    if shares:
        third: dict[str, Any] = {"title": {"text": "π(a)"}, "range": [0, 1]}
    else:
        third = {"title": {"text": "Q(a)" if action_values else "Action"}}
    figure.layout |= _axes({"title": {"text": "Reward"}}, {"title": {"text": "Value"}}, third)
    mark = {"color": muted(theme), "width": 1, "dash": "dot"}
    for at in lost:
        for panel in _PANELS if drawn.size else _PANELS[:2]:
            ends = {"x0": at, "x1": at, "y0": 0, "y1": 1}
            figure.add_line(mark, **ends, xref=panel["xaxis"], yref=f"{panel['yaxis']} domain")
    return figure


def _axes(*vertical: dict[str, Any]) -> dict[str, Any]:
    """The axes of the panels, given the y axis of each; the x axes zoom together."""
    axes: dict[str, Any] = {}
    for panel, domain, y in zip(_PANELS, _DOMAINS, vertical, strict=True):
        if panel is _PANELS[-1]:
            x: dict[str, Any] = {"title": {"text": "Agent steps in the episode"}, "tickformat": "~s"}
        else:
            x = {"matches": _PANELS[-1]["xaxis"], "showticklabels": False}
        x_name, y_name = panel["xaxis"].replace("x", "xaxis"), panel["yaxis"].replace("y", "yaxis")
        axes[x_name] = {"anchor": panel["yaxis"], "domain": [0, 1], **x}
        axes[y_name] = {"anchor": panel["xaxis"], "domain": domain, **y}
    return axes


def _sum_each(values: Array, size: int) -> Array:
    return np.add.reduceat(values.astype("f8"), np.arange(0, len(values), size)) if len(values) else values


def _average_each(values: Array, size: int) -> Array:
    counts = np.diff(np.append(np.arange(0, len(values), size), len(values)))
    return _sum_each(values, size) / counts
