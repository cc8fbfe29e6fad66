"""One episode from within: reward, what the value network thought, what the policy wanted."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from backend.figures.curve import plain
from backend.figures.theme import Theme, colours, layout, muted
from backend.metrics.chunks import Array
from backend.metrics.rollups import bucket_rows, last_rows

_HEIGHT_SHARES = [0.25, 0.35, 0.4]


def discounted(rewards: Array, gamma: float, clip: float | None) -> Array:
    """What V should have said: R_t = r_t + gamma * R_{t+1}, of rewards clipped as in training."""
    learned = np.clip(rewards, -clip, clip) if clip is not None else rewards
    returns = np.empty(len(rewards))
    total = 0.0
    for t in range(len(rewards) - 1, -1, -1):
        total = float(learned[t]) + gamma * total
        returns[t] = total
    return returns


def episode_trace(
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
) -> "go.Figure":
    """Three panels over the agent steps of the episode.

    Args:
        rewards: (T,) true reward of each decision.
        values: (T,) V(s_t).
        policies: (T, A) pi(a | s_t); A may be 0.
        action_names: A names, or of D numbers.
        numbers: (T, D) each action, where actions are continuous: drawn in the policy's place.
        returns: (T,) `discounted`, drawn behind V.
        lives: (T,) lives left; where one is lost, a dotted line is drawn.
        action_values: `policies` are Q(s_t, a), `values` the greatest of them.
        title: of the figure.
        max_points: a longer episode is drawn in buckets: rewards summed, the rest averaged.
        theme: light or dark.
        width_px: for a title that fits.
    """
    length = len(rewards)
    size = bucket_rows(length, max_points)
    steps = last_rows(length, size).tolist()
    lost = (np.flatnonzero(np.diff(lives) < 0) + 1).tolist() if lives is not None else []
    from plotly.subplots import make_subplots  # a tenth of a second of the web host's start

    figure = make_subplots(
        rows=3, cols=1, shared_xaxes=True, vertical_spacing=0.06, row_heights=_HEIGHT_SHARES
    )
    blue, orange, *_ = colours(theme)
    hover = {"mode": "lines", "hovertemplate": "%{y:.4~g}"}
    figure.add_scatter(
        x=steps,
        y=plain(_summed(rewards, size)),
        name="Reward" if size == 1 else f"Reward in {size} steps",
        line={"color": orange, "width": 1, "shape": "hvh"},
        row=1,
        col=1,
        **hover,
    )
    if returns is not None:
        figure.add_scatter(
            x=steps,
            y=plain(_averaged(returns, size)),
            name="Discounted return",
            line={"color": muted(theme), "width": 1, "dash": "dot"},
            row=2,
            col=1,
            **hover,
        )
    figure.add_scatter(
        x=steps,
        y=plain(_averaged(values, size)),
        name="max Q" if action_values else "V",
        line={"color": blue, "width": 2},
        row=2,
        col=1,
        **hover,
    )
    drawn = policies if numbers is None else numbers
    shares = numbers is None and not action_values
    stacked: dict[str, Any] = {"stackgroup": "pi", "line": {"width": 0}} if shares else {}
    for action, name in enumerate(action_names if drawn.size else ()):
        figure.add_scatter(
            x=steps,
            y=plain(_averaged(drawn[:, action], size)),
            name=name,
            **stacked,
            row=3,
            col=1,
            **hover,
        )
    about = [f"{length:,} agent steps"]
    if lost:
        about.append("dotted: a life lost")
    figure.update_layout(layout(title, theme, width_px, " · ".join(about)))
    figure.update_xaxes(title_text="Agent steps in the episode", tickformat="~s", row=3, col=1)
    figure.update_yaxes(title_text="Reward", row=1, col=1)
    figure.update_yaxes(title_text="Value", row=2, col=1)
    if shares:
        figure.update_yaxes(title_text="π(a)", range=[0, 1], row=3, col=1)
    elif action_values:
        figure.update_yaxes(title_text="Q(a)", row=3, col=1)
    else:
        figure.update_yaxes(title_text="Action", row=3, col=1)
    for at in lost:
        figure.add_vline(
            at,
            layer="below",
            line={"color": muted(theme), "width": 1, "dash": "dot"},
        )
    return figure


def _summed(values: Array, size: int) -> Array:
    return np.add.reduceat(values.astype("f8"), np.arange(0, len(values), size)) if len(values) else values


def _averaged(values: Array, size: int) -> Array:
    counts = np.diff(np.append(np.arange(0, len(values), size), len(values)))
    return _summed(values, size) / counts
