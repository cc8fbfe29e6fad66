"""Performance profiles and optimality gaps of arms over environments."""

from collections.abc import Sequence
from math import ceil

from backend.drawing.bars import Bar, bars_figure
from backend.drawing.figure import Figure
from backend.drawing.palette import look
from backend.drawing.panels import (
    FRAME_PX,
    LEGEND_ENTRY_PX,
    LEGEND_ROW_PX,
    MAX_TICKS,
    MEDIUM_PX,
    ROW_PX,
    Frame,
)
from backend.drawing.theme import layout, muted, plain_text
from backend.statistics.profiles import Profile


def profile_figure(profiles: Sequence[Profile], *, x: str, target: float, frame: Frame) -> Figure:
    """The share of each arm's runs above each normalised score, as steps (Agarwal et al. 2021, Figure 7).

    Args:
        profiles: profiles of each arm, over the same environments.
        x: title of the scores.
        target: the score of a person or of DQN, a line.
        frame: title, arms, theme and width.
    """
    figure = Figure(layout(frame.title, frame.theme, frame.width_px))
    width = frame.width_px or MEDIUM_PX
    legend_rows = ceil(len(profiles) * LEGEND_ENTRY_PX / width) if len(profiles) > 1 else 0
    figure.layout |= {
        "height": ROW_PX + FRAME_PX + legend_rows * LEGEND_ROW_PX,
        "hovermode": "closest",
        "showlegend": len(profiles) > 1,
        "xaxis": {"title": {"text": plain_text(x)}, "rangemode": "tozero", "nticks": MAX_TICKS},
        "yaxis": {"title": {"text": "Share of runs above"}, "range": [0, 1.02], "tickformat": ".0%"},
    }
    figure.layout["margin"] = figure.layout["margin"] | {"b": 12 + legend_rows * LEGEND_ROW_PX}
    figure.layout.pop("hoversubplots", None)
    for profile in profiles:
        looks = look(frame.style(profile.arm), frame.theme)
        figure.add_scatter(
            x=profile.tau,
            y=profile.share,
            mode=looks.mode,
            marker=looks.marker,
            line={"color": looks.colour, "width": 2, "shape": "hv"},
            name=plain_text(profile.arm),
            hovertemplate=(
                f"{plain_text(profile.arm)}<br>%{{y:.0%}} of the runs above %{{x:.4~g}} %<extra></extra>"
            ),
        )
        figure.n_total += profile.n_runs
    if profiles:
        line = {"color": muted(frame.theme), "width": 1, "dash": "dash"}
        figure.add_line(line, x0=target, x1=target, y0=0, y1=1, xref="x", yref="paper")
    figure.n_shown = figure.n_total
    return figure


def gaps_figure(profiles: Sequence[Profile], *, frame: Frame) -> Figure:
    """The optimality gap of each arm as a bar: lower is better (Agarwal et al. 2021, Figure 9)."""
    bars = [
        Bar(profile.arm, "", profile.optimality_gap, profile.arm, "Optimality gap", profile.n_runs)
        for profile in profiles
    ]
    return bars_figure(
        bars, panels=[""], parts=["Optimality gap"], x="", y="Optimality gap (%)", stacked=False, frame=frame
    )
