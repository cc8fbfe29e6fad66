"""One episode step by step: reward, value estimate, its error, and policy."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from backend.drawing.figure import Figure
from backend.drawing.palette import Theme, colours, look
from backend.drawing.theme import layout, muted
from backend.statistics.columns import Array, bucket_rows, last_rows

TracePanel = Literal["reward", "value", "value_error", "policy"]
"""`value_error`: V minus the discounted return that followed."""
TRACE_PANELS: tuple[TracePanel, ...] = ("reward", "value", "policy")
"""Panels, top to bottom, where none are requested."""

_SHARES: dict[TracePanel, int] = {"reward": 25, "value": 35, "value_error": 25, "policy": 40}
"""Of the height, relative to each other."""
_GAP = 0.06
"""Between two panels, as a share of the height."""
_FRAME_PX, _PANEL_PX = 110, 110


def discount(
    rewards: Array,
    gamma: float,
    clip: float | None,
    lives: Array | None = None,
    bootstrap: float | None = None,
) -> Array:
    """The discounted return R_t = r_t + gamma * R_{t+1}, of rewards clipped as in training.

    With `lives`, those left after each decision, the return ends where one is lost: for an agent that learns
    from single lives. `bootstrap` stands for the return after an episode that was truncated.
    """
    learned = np.clip(rewards, -clip, clip) if clip is not None else rewards
    returns = np.empty(len(rewards))
    total = bootstrap or 0.0
    if bootstrap is not None and lives is not None and len(lives) > 1:
        lives = np.append(lives[:-1], lives[-2])  # 0 after the last decision, which lost none
    for t in range(len(rewards) - 1, -1, -1):
        is_last_of_life = lives is not None and t > 0 and lives[t] < lives[t - 1]
        total = float(learned[t]) + (0.0 if is_last_of_life else gamma * total)
        returns[t] = total
    return returns


def episode_trace_figure(
    rewards: Array,
    values: Array,
    policies: Array,
    action_names: Sequence[str],
    *,
    panels: Sequence[TracePanel] = TRACE_PANELS,
    numbers: Array | None = None,
    returns: Array | None = None,
    lives: Array | None = None,
    action_values: bool = False,
    title: str = "Episode",
    notes: Sequence[str] = (),
    max_points: int = 1000,
    theme: Theme = "light",
    width_px: int | None = None,
) -> Figure:
    """Panels over the agent steps of the episode, which count from 1.

    Args:
        rewards: (T,) true reward of each agent step.
        values: (T,) V(s_t); empty where nobody has estimated them.
        policies: (T, A) pi(a | s_t); A may be 0.
        action_names: A names, or D names of action components.
        panels: panels, top to bottom; those without anything to draw are left out.
        numbers: (T, D) continuous actions, shown instead of the policy.
        returns: (T,) discounted returns, as from `discount`: drawn behind V; the value error is V minus them.
        lives: (T,) remaining lives; a lost life is marked by a dotted line.
        action_values: whether `policies` are Q(s_t, a) and `values` their maximum.
        title: title of the figure.
        notes: further parts of its subtitle.
        max_points: a longer episode is drawn in buckets: rewards are summed, the rest is averaged.
        theme: light or dark.
        width_px: width for which the title is wrapped.
    """
    length = len(rewards)
    size = bucket_rows(length, max_points)
    steps = (last_rows(length, size) + 1).tolist()
    lost = (np.flatnonzero(np.diff(lives) < 0) + 2).tolist() if lives is not None else []
    drawn = policies if numbers is None else numbers
    is_known: dict[TracePanel, bool] = {
        "reward": True,
        "value": len(values) > 0,
        "value_error": len(values) > 0 and returns is not None,
        "policy": drawn.size > 0,
    }
    shown = [panel for panel in dict.fromkeys(panels) if is_known[panel]] or ["reward"]
    value = "max Q" if action_values else "V"
    subtitle = [f"{length:,} agent steps", *notes]
    if size > 1:
        subtitle.append(f"rewards summed and the rest averaged over {size} agent steps")
    if "value_error" in shown:
        subtitle.append(f"value error: {value} minus discounted return")
    figure = Figure(layout(title, theme, width_px, " · ".join(subtitle + ["dotted: life lost"] * bool(lost))))
    shares = numbers is None and not action_values
    axes = _axis_names(len(shown))
    figure.layout |= _axes(shown, "π(a)" if shares else "Q(a)" if numbers is None else "Action")
    figure.layout["height"] = _FRAME_PX + _PANEL_PX * len(shown)
    blue, orange, *_ = colours(theme)
    actions = action_names if "policy" in shown else ()
    # Not in the colours of reward and V, which the legend names too.
    of_actions = [look(2 + action, theme) for action in range(len(actions))]
    of_error = look(2 + len(actions), theme)

    def add(panel: TracePanel, name: str, y: Array, line: dict[str, Any], **more: Any) -> None:
        axis = axes[shown.index(panel)]
        style = {"mode": "lines", "hovertemplate": "%{y:.4~g}", "meta": {"kind": "line"}} | more
        figure.add_scatter(x=steps, y=y, name=name, line=line, yaxis=axis, **style)

    line: dict[str, Any] = {"color": orange, "width": 1, "shape": "hvh"}
    reward = "Reward" if size == 1 else f"Reward in {size} steps"
    if "reward" in shown:
        add("reward", reward, _sum_each(rewards, size), line)
    if "value" in shown:
        if returns is not None:
            line = {"color": muted(theme), "width": 1}
            add("value", "Discounted return", _average_each(returns, size), line)
        add("value", value, _average_each(values, size), {"color": blue, "width": 2})
    if "value_error" in shown and returns is not None:
        errors, line = _average_each(values - returns, size), {"color": of_error.colour, "width": 2}
        add("value_error", "Value error", errors, line, mode=of_error.mode, marker=of_error.marker)
    for action, (name, looks) in enumerate(zip(actions, of_actions, strict=True)):
        line = {"color": looks.colour, "width": 0 if shares else 2}
        style = {"stackgroup": "pi"} if shares else {"mode": looks.mode, "marker": looks.marker}
        add("policy", name, _average_each(drawn[:, action], size), line, **style)
    mark = {"color": muted(theme), "width": 1, "dash": "dot"}
    for at in lost:
        for axis in axes:
            figure.add_line(mark, x0=at, x1=at, y0=0, y1=1, xref="x", yref=f"{axis} domain")
    return figure


def _axis_names(n: int) -> list[str]:
    """The vertical axes of the panels, top to bottom, as traces name them."""
    return ["y", *(f"y{number}" for number in range(2, n + 1))]


def _axes(panels: Sequence[TracePanel], policy: str) -> dict[str, Any]:
    """The axes of the panels, all over one horizontal axis below the last.

    Args:
        panels: panels, top to bottom.
        policy: title of the policy's axis.
    """
    titles: dict[TracePanel, str] = {
        "reward": "Reward",
        "value": "Value",
        "value_error": "Value error",
        "policy": policy,
    }
    names = _axis_names(len(panels))
    x = {"title": {"text": "Agent steps in the episode"}, "tickformat": "~s", "anchor": names[-1]}
    axes: dict[str, Any] = {"xaxis": x}
    height = (1 - _GAP * (len(panels) - 1)) / sum(_SHARES[panel] for panel in panels)
    top = 1.0
    for name, panel in zip(names, panels, strict=True):
        bottom = max(0.0, top - _SHARES[panel] * height)
        axis: dict[str, Any] = {"title": {"text": titles[panel]}, "anchor": "x", "domain": [bottom, top]}
        axes[name.replace("y", "yaxis")] = axis | ({"range": [0, 1]} if titles[panel] == "π(a)" else {})
        top = bottom - _GAP
    return axes


def _sum_each(values: Array, size: int) -> Array:
    return np.add.reduceat(values.astype("f8"), np.arange(0, len(values), size)) if len(values) else values


def _average_each(values: Array, size: int) -> Array:
    counts = np.diff(np.append(np.arange(0, len(values), size), len(values)))
    return _sum_each(values, size) / counts
