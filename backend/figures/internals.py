"""What a method is made of, drawn as its paper draws it: several of a run's metrics in one panel."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from backend.figures.curve import Line, axes_layout, plain
from backend.figures.theme import BESIDE, DASHES, Theme, colours, faint, layout, plain_text

_SHARE_OPACITY = 0.55
_MOST_BELOW = 4
"""A legend of more lines stands beside the plot: below a small one, it would take its room."""


@dataclass(frozen=True)
class Panel:
    """One figure of a run's internals."""

    id: str
    title: str
    axis: str
    """Name of its vertical axis, unit included."""
    names: dict[str, str]
    """Its metrics, and what each is called; parts of a run (actors, shards) go by their own names."""
    stacked: bool = False
    """Shares of a whole, one on the other."""
    stepped: bool = False
    """Numbers that hold until they are changed."""


PANELS = (
    Panel(
        "rates",
        "Trainings and predictions",
        "Each second",
        {"speed/updates_per_s": "trainings (TPS)", "speed/predictions_per_s": "predictions (PPS)"},
    ),
    Panel(
        "queues",
        "Queue lengths",
        "Waiting",
        {"ga3c/prediction_queue": "predictions", "ga3c/training_queue": "trainings"},
    ),
    Panel(
        "batches",
        "Batch sizes",
        "Rows of a batch",
        {"ga3c/prediction_batch": "predictions", "ga3c/training_batch": "trainings"},
    ),
    Panel(
        "setting",
        "Agents, predictors, trainers",
        "How many",
        {
            "ga3c/n_actors": "agents (N_A)",
            "ga3c/n_predictors": "predictors (N_P)",
            "ga3c/n_trainers": "trainers (N_T)",
        },
        stepped=True,
    ),
    Panel(
        "lag",
        "Policy lag",
        "Updates late",
        {"ga3c/policy_lag": "mean", "ga3c/policy_lag_max": "greatest"},
    ),
    Panel("lag_share", "Policy lag, shares", "Share", {"ga3c/policy_lag_share": ""}, True),
    Panel("waiting", "Agents waiting", "Share of the time", {"ga3c/waiting_share": "waiting for an action"}),
    Panel(
        "time_usage",
        "Where the time goes",
        "Share of the time",
        {
            "paac/time_environment": "environments",
            "paac/time_choosing": "choosing actions",
            "paac/time_learning": "learning",
            "paac/time_rest": "waiting",
        },
        True,
    ),
    Panel("epsilon", "Epsilon", "Share", {"exploration/epsilon": ""}),
    Panel("q", "Greatest Q", "Mean of max Q", {"value/max_q": "max Q"}),
    Panel("replay", "Replay memory", "Share filled", {"replay/fill": "filled", "gorila/replay_fill": ""}),
    Panel(
        "traffic",
        "Gradients and parameters on the way",
        "Each second",
        {"gorila/pushes_per_s": "pushes", "gorila/pulls_per_s": "pulls"},
    ),
    Panel(
        "bytes",
        "Bytes on the way",
        "Bytes/s",
        {"gorila/push_bytes_per_s": "pushed", "gorila/pull_bytes_per_s": "pulled"},
    ),
    Panel(
        "staleness",
        "Staleness of gradients",
        "Updates late",
        {"gorila/gradient_staleness": "mean", "gorila/gradient_staleness_max": "greatest"},
    ),
    Panel(
        "staleness_share",
        "Staleness, shares",
        "Share",
        {"gorila/gradient_staleness_share": ""},
        True,
    ),
    Panel(
        "discards",
        "Discarded and lost",
        "So far in this attempt",
        {
            "gorila/stale_discards": "stale gradients",
            "gorila/outlier_discards": "outliers",
            "gorila/lost_pushes": "lost pushes",
            "gorila/lost_updates": "lost updates",
            "gorila/lost_chunks": "lost chunks",
            "gorila/replay_detours": "replay detours",
        },
    ),
    Panel("shards", "Parameter shards", "Updates", {"gorila/shard_updates": ""}),
    Panel("versions", "Parameters the actors have", "Updates seen", {"gorila/version_seen": ""}),
    Panel("actor_episodes", "Episodes of each actor", "Episodes", {"gorila/episodes": ""}),
)

BY_ID = {panel.id: panel for panel in PANELS}


def present(metrics: set[str]) -> list[Panel]:
    """The panels that a run with these metrics has something for."""
    # How many updates a second any method makes; against what, only one that predicts apart can say.
    return [
        panel
        for panel in PANELS
        if not metrics.isdisjoint(panel.names)
        and (panel.id != "rates" or "speed/predictions_per_s" in metrics)
    ]


def internals(
    panel: Panel, lines: Sequence[Line], *, x: str, smooth: float, title: str, theme: Theme = "light"
) -> "go.Figure":
    """One panel: each metric or part of the run a line, or a share on top of the others.

    Args:
        panel: which.
        lines: the run's series of its metrics; `meta` of a trace says which it draws.
        x: one of `chunks.X_COLUMNS`.
        smooth: weight of the moving average, 0 for none.
        title: of the figure.
        theme: light or dark.
    """
    axes = axes_layout(next(iter(panel.names)), x)
    axes["yaxis"] |= {"title": {"text": panel.axis}, "rangemode": "tozero"}
    if panel.stacked:
        axes["yaxis"] |= {"range": [0, 1], "tickformat": ".0%"}
    figure = go.Figure(layout=layout(title, theme, None) | axes)
    figure.update_layout(legend_traceorder="normal")
    if len(lines) > _MOST_BELOW:
        order = "reversed" if panel.stacked else "normal"
        figure.update_layout(legend=BESIDE | {"traceorder": order})
    palette = colours(theme)
    for number, line in enumerate(lines):
        colour, dash = palette[number % len(palette)], DASHES[number // len(palette) % len(DASHES)]
        # What holds until it is changed has nothing in between.
        column = "smoothed" if smooth > 0 and not panel.stepped else "mean"
        look: dict[str, Any] = {
            "line": {"color": colour, "width": 2, "dash": dash, "shape": "hv" if panel.stepped else None}
        }
        if panel.stacked:
            look = {
                "stackgroup": "shares",
                "line": {"color": colour, "width": 0},
                "fillcolor": faint(colour, _SHARE_OPACITY),
            }
        figure.add_scatter(
            x=plain(line.columns["x"]) if line.columns else [],
            y=plain(line.columns[column]) if line.columns else [],
            mode="lines",
            name=plain_text(line.source) or panel.names[line.metric],
            hovertemplate="%{y:.4~g}",
            meta={"run": line.run, "metric": line.metric, "source": line.source, "y": column},
            **look,
        )
    return figure
