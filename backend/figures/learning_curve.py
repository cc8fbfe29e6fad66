"""The learning curve: returns while training, evaluations, and what others have reached."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import plotly.graph_objects as go

from backend.figures.curve import Line, curve
from backend.figures.marks import Mark, add_marks
from backend.figures.theme import MINUS, Theme, faint, ground, muted, plain_text, styles
from backend.metrics.catalogue import PROTOCOLS

METRIC = "rollout/episode_return"

_LABEL_SHARE = 0.08
"""Of the span of all levels: what a label takes of a plot's height."""


@dataclass(frozen=True)
class Evaluated:
    """One evaluation: the mean return of some episodes by some protocol."""

    run: str
    name: str
    """The run's."""
    protocol: str
    x: float
    mean_return: float
    n_episodes: int


@dataclass(frozen=True)
class Level:
    """A score that someone reached."""

    label: str
    score: float
    protocol: str


def learning_curve(
    lines: Sequence[Line],
    *,
    x: str,
    smooth: float,
    runs: Sequence[str] = (),
    evaluations: Sequence[Evaluated] = (),
    levels: Sequence[Level] = (),
    best: float | None = None,
    checkpoints: Sequence[Mark] = (),
    restarts: Sequence[Mark] = (),
    setting_changes: Sequence[Mark] = (),
    title: str = "Learning curve",
    theme: Theme = "light",
    width_px: int | None = None,
) -> "go.Figure":
    """`curve` of episode returns with evaluations, levels and marks.

    Args:
        lines: the runs' episode returns.
        x: one of `chunks.X_COLUMNS`.
        smooth: weight of the moving average.
        runs: as for `curve`.
        evaluations: drawn as diamonds, named by their protocol.
        levels: drawn as thin labelled lines. The next one above `best` is kept in view, and all below it.
        best: the best return so far, if there is one.
        checkpoints: drawn as faint ticks at the foot of the plot.
        restarts: drawn as dotted vertical lines.
        setting_changes: drawn as dash-dotted vertical lines.
        title: of the figure.
        theme: light or dark.
        width_px: as for `curve`.
    """
    figure = curve(
        lines, metric=METRIC, x=x, runs=runs, smooth=smooth, title=title, theme=theme, width_px=width_px
    )
    looks = styles([*runs, *(line.run for line in lines)], theme)
    colours = {line.run: looks[line.run][0] for line in lines}
    _add_evaluations(figure, evaluations, colours, theme)
    _add_levels(figure, levels, best, theme)
    add_marks(figure, "checkpoints", checkpoints, colours, theme)
    add_marks(figure, "restarts", restarts, colours, theme)
    add_marks(figure, "setting changes", setting_changes, colours, theme)
    return figure


def _add_evaluations(
    figure: "go.Figure", evaluations: Sequence[Evaluated], colours: dict[str, str], theme: Theme
) -> None:
    """One entry in the legend for each protocol, whatever the runs: they tell themselves by their colours."""
    several = len(colours) > 1
    ordered = sorted(evaluations, key=lambda one: (one.protocol, one.run, one.x))
    for protocol, alike in groupby(ordered, key=lambda one: one.protocol):
        kind = f"evaluation ({PROTOCOLS.get(protocol, protocol)})"
        shared: dict[str, Any] = {"mode": "lines+markers", "legendgroup": kind}
        if several:
            look = _diamonds(muted(theme))
            figure.add_scatter(x=[None], y=[None], name=kind, meta={"legend": kind}, **look, **shared)
        for run, some in groupby(alike, key=lambda one: one.run):
            points = list(some)
            figure.add_scatter(
                x=[point.x for point in points],
                y=[point.mean_return for point in points],
                text=[f"mean of {point.n_episodes} episodes" for point in points],
                name=f"{plain_text(points[0].name)}, {kind}" if several else kind,
                showlegend=not several,
                hovertemplate="%{y:.5~g} (%{text})",
                meta={"run": run, "protocol": protocol},
                **_diamonds(colours[run]),
                **shared,
            )


def _diamonds(colour: str) -> dict[str, Any]:
    return {
        "line": {"color": colour, "width": 1, "dash": "dot"},
        "marker": {"color": colour, "size": 9, "symbol": "diamond"},
    }


def _add_levels(figure: "go.Figure", levels: Sequence[Level], best: float | None, theme: Theme) -> None:
    ordered = sorted(levels, key=lambda level: level.score)
    line = {"color": muted(theme), "width": 1, "dash": "dash"}
    for level in ordered:
        figure.add_hline(level.score, layer="below", line=line)
    for number, some in enumerate(_close_together(ordered)):
        # Out of the way of a curve that rises from the lowest level at the left.
        side = "right" if number == 0 else "left"
        figure.add_annotation(
            text=_named(some),
            x=1 if side == "right" else 0,
            xref="x domain",
            xanchor=side,
            # At the lowest of them: where it is in view, so is what they are called.
            y=some[0].score,
            yref="y",
            yanchor="bottom",
            align=side,
            showarrow=False,
            font={"color": muted(theme), "size": 11},
            bgcolor=faint(ground(theme), 0.8),
            borderpad=1,
        )
    above = [level.score for level in ordered if best is None or level.score > best][:1]
    reached = [level.score for level in ordered if best is not None and level.score <= best]
    if above or reached:
        figure.update_yaxes(autorangeoptions={"include": reached + above})


def _close_together(ordered: Sequence[Level]) -> list[list[Level]]:
    """Levels whose labels would lie on each other share one."""
    near = _LABEL_SHARE * (ordered[-1].score - ordered[0].score) if ordered else 0.0
    found: list[list[Level]] = []
    for level in ordered:
        if found and level.score - found[-1][0].score <= near:
            found[-1].append(level)
        else:
            found.append([level])
    return found


def _named(some: Sequence[Level]) -> str:
    """The highest first, two a line; how all of them were measured is said once where it is the same."""
    protocols = {level.protocol for level in some}
    told = [
        f"{level.label} {level.score:g}".replace("-", MINUS)
        + (f" ({PROTOCOLS.get(level.protocol, level.protocol)})" if len(protocols) > 1 else "")
        for level in reversed(some)
    ]
    lines = [" · ".join(told[at : at + 2]) for at in range(0, len(told), 2)]
    if len(protocols) == 1:
        protocol = protocols.pop()
        lines[-1] += f" ({PROTOCOLS.get(protocol, protocol)})"
    return "<br>".join(lines)
