"""The learning curve: training returns, evaluations and published scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from backend.drawing.catalogue import EPISODE_RETURN
from backend.drawing.curve import Band, CurveLine, curve_figure
from backend.drawing.figure import Figure, Label
from backend.drawing.marks import Mark, add_marks
from backend.drawing.palette import Theme, distinct_styles, look
from backend.drawing.theme import MINUS, faint, ground, muted, plain_text
from backend.specs.play import HUMAN_PLAY
from backend.specs.protocols import protocol_title

_LABEL_SHARE = 0.08
"""Height of a label as a share of the range of all levels."""


@dataclass(frozen=True)
class Evaluated:
    """One evaluation: the mean return of its episodes."""

    run: str
    name: str
    """Name of the run."""
    protocol: str
    x: float
    mean_return: float
    n_episodes: int


@dataclass(frozen=True)
class Level:
    """A published score, or the mean of what people have reached here."""

    label: str
    score: float
    protocol: str

    @property
    def source(self) -> str:
        """Where it comes from, in words."""
        words = protocol_title(self.protocol)
        return words if self.protocol == HUMAN_PLAY else f"published, {words}"


def learning_curve_figure(
    lines: Sequence[CurveLine],
    *,
    x: str,
    smooth: str,
    band: Band = "auto",
    runs: Sequence[str] = (),
    evaluations: Sequence[Evaluated] = (),
    levels: Sequence[Level] = (),
    best: float | None = None,
    checkpoints: Sequence[Mark] = (),
    restarts: Sequence[Mark] = (),
    setting_changes: Sequence[Mark] = (),
    notes: Sequence[Mark] = (),
    symptoms: Sequence[Mark] = (),
    title: str = "Learning curve",
    styles: Mapping[str, int] | None = None,
    theme: Theme = "light",
    width_px: int | None = None,
) -> Figure:
    """`curve_figure` of episode returns with evaluations, published scores and marks.

    Args:
        lines: the runs' episode returns.
        x: one of `catalogue.X_AXES`.
        smooth: as for `curve_figure`.
        band: as for `curve_figure`.
        runs: all runs of the figure, also those without returns.
        evaluations: in the lane under the curves; those of a single run also as diamonds at their returns,
            named by their protocol.
        levels: drawn as thin labelled lines. The next one above `best`, and all below, are in view.
        best: the best return so far, if there is one.
        checkpoints: in the lane, of a single run.
        restarts: in the lane.
        setting_changes: in the lane.
        notes: in the lane.
        symptoms: in the lane.
        title: title of the figure.
        styles: by run; default: in the order of `runs`.
        theme: light or dark.
        width_px: as for `curve_figure`.
    """
    if styles is None:
        styles = distinct_styles([*runs, *(line.run for line in lines)])
    figure = curve_figure(
        lines,
        metric=EPISODE_RETURN,
        x=x,
        smooth=smooth,
        band=band,
        title=title,
        styles=styles,
        theme=theme,
        width_px=width_px,
    )
    colours = {run: look(style, theme).colour for run, style in styles.items()}
    add_levels(figure, levels, best, theme)
    several = len({*runs, *(line.run for line in lines)}) > 1
    if not several:
        _add_evaluations(figure, evaluations, colours)
        add_marks(figure, "checkpoints", checkpoints, colours, theme)
    done = [_mark(evaluation, several=several) for evaluation in evaluations]
    add_marks(figure, "evaluations", done, colours, theme, named=several)
    add_marks(figure, "restarts", restarts, colours, theme)
    add_marks(figure, "setting changes", setting_changes, colours, theme)
    add_marks(figure, "notes", notes, colours, theme)
    add_marks(figure, "symptoms", symptoms, colours, theme)
    return figure


def _mark(evaluation: Evaluated, *, several: bool) -> Mark:
    name = f"{plain_text(evaluation.name)}: " if several else ""
    result = f"mean return {evaluation.mean_return:.5g} of {evaluation.n_episodes} episodes".replace(
        "-", MINUS
    )
    return Mark(
        evaluation.run, evaluation.x, f"{name}evaluation ({protocol_title(evaluation.protocol)}), {result}"
    )


def _add_evaluations(figure: Figure, evaluations: Sequence[Evaluated], colours: dict[str, str]) -> None:
    """The returns of a single run's evaluations, one legend entry per protocol."""
    ordered = sorted(evaluations, key=lambda evaluation: (evaluation.protocol, evaluation.x))
    for protocol, alike in groupby(ordered, key=lambda evaluation: evaluation.protocol):
        points = list(alike)
        label = Label(f"evaluation ({protocol_title(protocol)})")
        figure.add_scatter(
            x=[point.x for point in points],
            y=[point.mean_return for point in points],
            text=[f"mean of {point.n_episodes} episodes" for point in points],
            mode="lines+markers",
            name=plain_text(label.text),
            legendgroup=label.text,
            hovertemplate="%{y:.5~g} (%{text})",
            meta={
                "kind": "evaluations",
                "run": points[0].run,
                "protocol": protocol,
                "label": label.parts(),
            },
            **_diamonds(colours[points[0].run]),
        )


def _diamonds(colour: str) -> dict[str, Any]:
    return {
        "line": {"color": colour, "width": 1},
        "marker": {"color": colour, "size": 9, "symbol": "diamond"},
    }


def add_levels(figure: Figure, levels: Sequence[Level], best: float | None, theme: Theme) -> None:
    """Draw reference scores as labelled dashed lines; no other line is dashed.

    Args:
        figure: a figure of returns.
        levels: the scores.
        best: the best return so far; the next level above it, and all below, are in view.
        theme: light or dark.
    """
    ordered = sorted(levels, key=lambda level: level.score)
    line = {"color": muted(theme), "width": 1, "dash": "dash"}
    for level in ordered:
        ends = {"x0": 0, "x1": 1, "xref": "x domain", "y0": level.score, "y1": level.score, "yref": "y"}
        figure.add_line(line, name=plain_text(_named([level])), **ends)
    for number, cluster in enumerate(_close_together(ordered)):
        # A curve that starts near the lowest level on the left must not overlap its label.
        side = "right" if number == 0 else "left"
        figure.add_annotation(
            text=_named(cluster),
            x=1 if side == "right" else 0,
            xref="x domain",
            xanchor=side,
            # At the lowest of them: if it is in view, so is the label.
            y=cluster[0].score,
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
        figure.layout["yaxis"]["autorangeoptions"] = {"include": reached + above}


def _close_together(ordered: Sequence[Level]) -> list[list[Level]]:
    """Groups of levels whose labels would overlap; each group gets one label."""
    near = _LABEL_SHARE * (ordered[-1].score - ordered[0].score) if ordered else 0.0
    clusters: list[list[Level]] = []
    for level in ordered:
        if clusters and level.score - clusters[-1][0].score <= near:
            clusters[-1].append(level)
        else:
            clusters.append([level])
    return clusters


def _named(cluster: Sequence[Level]) -> str:
    """Label of a group: highest score first, two per line; a common source is stated once."""
    sources = {level.source for level in cluster}
    labels = [
        f"{level.label} {level.score:g}".replace("-", MINUS)
        + (f" ({level.source})" if len(sources) > 1 else "")
        for level in reversed(cluster)
    ]
    lines = [" · ".join(labels[at : at + 2]) for at in range(0, len(labels), 2)]
    if len(sources) == 1:
        lines[-1] += f" ({cluster[0].source})"
    return "<br>".join(lines)
