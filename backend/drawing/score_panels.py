"""Scores of configs: bars with intervals, strips of seeds, heat maps over two settings, and which setting
matters."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Literal

from backend.drawing.figure import Figure
from backend.drawing.palette import Theme, colours, look
from backend.drawing.scatter import dash, setting_axes
from backend.drawing.theme import blended, faint, ground, layout, muted, plain_text, text_colour

_ROW_PX = 26
_BELOW_PX = 100
"""Height of the lower axis and the legend."""
_LEAST_PX = 220
_MAX_NAMED = 30
"""Rows up to which each has its name; of more, as many as there is room for."""
_UNFINISHED = {"shape": "/", "size": 6, "solidity": 0.3, "fillmode": "overlay"}
"""Of the bars of configs with runs that have not finished."""

ShareKind = Literal["setting", "combinations", "seed"]


@dataclass(frozen=True)
class SeedDot:
    """The score of one run."""

    run: str
    name: str
    """Such as `seed 3`, or why it does not count."""
    score: float
    is_counted: bool
    x: float | str | None = None
    """Its value of the setting that the strips are drawn over."""


@dataclass(frozen=True)
class ConfigScores:
    """The scores of runs that differ in their seed alone."""

    id: str
    name: str
    """What it is called, with what must be known of its runs; unlike any other."""
    style: int
    seeds: Sequence[SeedDot]
    n: int
    """Number of the scores that count."""
    median: float | None
    low: float | None
    high: float | None
    iqm: float | None
    is_unfinished: bool = False
    """Whether any of its runs failed, was lost or was stopped."""


@dataclass(frozen=True)
class HeatCell:
    """The score of two values of settings."""

    x: str
    y: str
    value: float
    below: str
    """Of how many seeds."""


@dataclass(frozen=True)
class ShareBar:
    """The share of the variance of scores that something explains."""

    title: str
    share: float
    kind: ShareKind


@dataclass(frozen=True)
class Plate:
    """What a figure of scores has apart from them."""

    title: str
    subtitle: str
    score: str
    """Title of the scores."""
    theme: Theme = "light"
    width_px: int | None = None
    in_panel: bool = False
    """For a panel of a page, which has a heading of its own, and sets the height."""

    def figure(self, n_rows: int | None = None) -> Figure:
        """An empty figure, with a row for each of `n_rows` bars or strips."""
        drawn = layout(self.title, self.theme, self.width_px, self.subtitle)
        drawn |= {"hovermode": "closest", "showlegend": False}
        drawn["legend"]["itemsizing"] = "constant"
        drawn.pop("hoversubplots", None)
        if self.in_panel:
            drawn.pop("title")
            drawn["margin"] = drawn["margin"] | {"t": 8}
        elif n_rows is not None:
            drawn["height"] = max(_LEAST_PX, drawn["margin"]["t"] + n_rows * _ROW_PX + _BELOW_PX)
        return Figure(drawn)


def bars_of_configs(configs: Sequence[ConfigScores], plate: Plate) -> Figure:
    """The median score of each config as a bar with its interval, in this order from the top."""
    known = [config for config in configs if config.median is not None]
    figure = plate.figure(len(known))
    figure.layout |= _rows_layout([config.name for config in known], "Score")
    figure.n_total = figure.n_shown = sum(config.n for config in known)
    if not known:
        return _say(figure, "No config has a score", plate)
    # Each row has one bar: "stack" leaves it the whole height, whichever trace it is of.
    figure.layout["barmode"] = "stack"
    for is_unfinished in (False, True):
        alike = [config for config in known if config.is_unfinished == is_unfinished]
        if alike:
            figure.data.append(_bars(alike, plate, is_unfinished=is_unfinished))
    return figure


def _bars(configs: Sequence[ConfigScores], plate: Plate, *, is_unfinished: bool) -> dict[str, Any]:
    medians = [config.median or 0.0 for config in configs]
    highs = [0 if c.high is None else c.high - at for c, at in zip(configs, medians, strict=True)]
    lows = [0 if c.low is None else at - c.low for c, at in zip(configs, medians, strict=True)]
    whiskers = {
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": highs,
            "arrayminus": lows,
            "color": muted(plate.theme),
            "thickness": 1.5,
        }
    }
    hatch = {"pattern": _UNFINISHED | {"fgcolor": ground(plate.theme)}}
    return {
        "type": "bar",
        "orientation": "h",
        "x": medians,
        "y": [plain_text(config.name) for config in configs],
        **(whiskers if any(highs) or any(lows) else {}),
        "marker": {
            "color": [look(config.style, plate.theme).colour for config in configs],
            **(hatch if is_unfinished else {}),
        },
        "text": [_in_words(config) for config in configs],
        "textposition": "none",
        "customdata": [config.id for config in configs],
        "name": "median, not all runs finished" if is_unfinished else "median",
        "hovertemplate": "%{y}<br>%{text}<extra></extra>",
        "meta": {"kind": "bar", "n": [float(config.n) for config in configs]},
    }


def strips_of_configs(configs: Sequence[ConfigScores], plate: Plate) -> Figure:
    """Each seed of each config as a dot in the row of its config, open if it does not count, and the
    interquartile mean of those that do as a dash; in this order from the top."""
    shown = [config for config in configs if config.seeds]
    figure = plate.figure(len(shown))
    figure.layout |= _rows_layout([config.name for config in shown], "Score")
    figure.n_total = figure.n_shown = sum(len(config.seeds) for config in shown)
    if not shown:
        return _say(figure, "No run has a score", plate)
    # From the bottom, as matplotlib orders categories by their first occurrence.
    dots = [(config, seed) for config in reversed(shown) for seed in config.seeds]
    rows = [plain_text(config.name) for config, _ in dots]
    _add_seeds(figure, dots, [seed.score for _, seed in dots], rows, "%{x:.5~g}", plate)
    centres = [config for config in shown if config.iqm is not None]
    figure.add_scatter(
        x=[config.iqm for config in centres],
        y=[plain_text(config.name) for config in centres],
        text=[_in_words(config) for config in centres],
        customdata=[config.id for config in centres],
        mode="markers",
        marker=dash(muted(plate.theme), symbol="line-ns-open", size=18),
        name="interquartile mean",
        showlegend=True,
        hovertemplate="%{y}<br>%{text}<extra></extra>",
        meta={"kind": "centre"},
    )
    figure.layout["showlegend"] = True
    return figure


def strips_over_setting(configs: Sequence[ConfigScores], x: str, plate: Plate) -> Figure:
    """Each seed of each config as a dot over a setting, open if it does not count, and the interquartile mean
    of those that do as a dash; joined by a line where the config at each value is a single one.

    Args:
        configs: with the setting's value of each seed.
        x: title of the setting.
        plate: the rest.
    """
    shown = [config for config in configs if config.seeds]
    dots = [(config, seed) for config in shown for seed in config.seeds if seed.x is not None]
    figure = plate.figure()
    figure.n_total = figure.n_shown = len(dots)
    values = [seed.x for _, seed in dots if seed.x is not None]
    figure.layout |= setting_axes(values, x, plate.score, log=None)
    if not dots:
        return _say(figure, "No run has a score and this setting", plate)
    _add_seeds(
        figure, dots, [seed.x for _, seed in dots], [seed.score for _, seed in dots], "%{y:.5~g}", plate
    )
    places = {config.id: config.seeds[0].x for config in shown if config.iqm is not None}
    numeric = all(isinstance(value, int | float) for value in values)
    centres = [config for config in shown if places.get(config.id) is not None]
    centres.sort(key=lambda config: (places[config.id] if numeric else 0.0, str(places[config.id])))
    is_line = numeric and len({places[config.id] for config in centres}) == len(centres) > 1
    figure.add_scatter(
        x=[places[config.id] for config in centres],
        y=[config.iqm for config in centres],
        text=[f"{plain_text(config.name)}<br>{_in_words(config)}" for config in centres],
        customdata=[config.id for config in centres],
        mode="lines+markers" if is_line else "markers",
        line={"color": muted(plate.theme), "width": 1} if is_line else None,
        marker=dash(muted(plate.theme)),
        name="interquartile mean",
        showlegend=True,
        hovertemplate="%{text}<extra></extra>",
        meta={"kind": "centre"},
    )
    figure.layout["showlegend"] = True
    return figure


def heat_map(
    cells: Sequence[HeatCell], xs: Sequence[str], ys: Sequence[str], x: str, y: str, plate: Plate
) -> Figure:
    """Scores over two settings, as coloured cells with their numbers.

    Args:
        cells: those with a score.
        xs: the values of the first setting, in their order; so are `ys`, from the bottom.
        ys: the values of the second.
        x: title of the first setting.
        y: title of the second.
        plate: the rest.
    """
    figure = plate.figure()
    figure.layout |= {
        "xaxis": {"title": {"text": plain_text(x)}, "type": "category", "showgrid": False},
        "yaxis": {"title": {"text": plain_text(y)}, "type": "category", "showgrid": False},
    }
    figure.n_total = figure.n_shown = len(cells)
    if not cells:
        return _say(figure, "No run has a score and both settings", plate)
    by_place = {(cell.y, cell.x): cell for cell in cells}
    rows = [[by_place.get((row, column)) for column in xs] for row in ys]
    accent = colours(plate.theme)[0]
    figure.data.append(
        {
            "type": "heatmap",
            "x": [plain_text(value) for value in xs],
            "y": [plain_text(value) for value in ys],
            "z": [[None if cell is None else cell.value for cell in row] for row in rows],
            "text": [
                ["" if cell is None else f"{cell.value:,.4g}<br>{plain_text(cell.below)}" for cell in row]
                for row in rows
            ],
            "texttemplate": "%{text}",
            "hovertemplate": f"{plain_text(x)} %{{x}}<br>{plain_text(y)} %{{y}}<br>%{{text}}<extra></extra>",
            "textfont": {"color": text_colour(plate.theme)},
            # Never so strong that the text has too little contrast.
            "colorscale": [
                [at, blended(accent, ground(plate.theme), strength)] for at, strength in ((0, 0.06), (1, 0.5))
            ],
            "showscale": False,
            "xgap": 2,
            "ygap": 2,
            "hoverongaps": False,
            "meta": {"kind": "cell"},
        }
    )
    return figure


def importance_figure(shares: Sequence[ShareBar], missing: str, plate: Plate) -> Figure:
    """How much of the variance of scores each setting explains, and the seed, as bars from the top.

    Args:
        shares: the bars; empty if they cannot be estimated.
        missing: why, then.
        plate: the rest.
    """
    figure = plate.figure(len(shares))
    figure.layout |= _rows_layout([share.title for share in shares], "Share of the variance of scores")
    figure.layout["xaxis"] |= {"range": [0, 1.12], "dtick": 0.25, "tickformat": ".0%"}
    figure.n_total = figure.n_shown = len(shares)
    if not shares:
        return _say(figure, missing, plate)
    accent, grey = colours(plate.theme)[0], muted(plate.theme)
    colour: dict[ShareKind, str] = {
        "setting": accent,
        "combinations": faint(accent, 0.5),
        "seed": faint(grey, 0.6),
    }
    figure.data.append(
        {
            "type": "bar",
            "orientation": "h",
            "x": [share.share for share in shares],
            "y": [plain_text(share.title) for share in shares],
            "marker": {"color": [colour[share.kind] for share in shares]},
            "text": [f"{share.share:.0%}" for share in shares],
            "textposition": "outside",
            "cliponaxis": False,
            "name": "share of the variance",
            "hovertemplate": "%{y}: %{x:.1%}<extra></extra>",
            "meta": {"kind": "share"},
        }
    )
    return figure


def _rows_layout(names: Sequence[str], score: str) -> dict[str, Any]:
    # Plotly draws the first at the bottom.
    order = [plain_text(name) for name in reversed(names)]
    every = {"dtick": 1} if len(order) <= _MAX_NAMED else {}
    return {
        "bargap": 0.3,
        "xaxis": {"title": {"text": plain_text(score)}, "exponentformat": "SI"},
        "yaxis": {"type": "category", "categoryorder": "array", "categoryarray": order} | every,
    }


def _add_seeds(
    figure: Figure,
    dots: Sequence[tuple[ConfigScores, SeedDot]],
    x: Sequence[Any],
    y: Sequence[Any],
    score: str,
    plate: Plate,
) -> None:
    figure.add_scatter(
        x=x,
        y=y,
        mode="markers",
        marker={
            "color": [look(config.style, plate.theme).colour for config, _ in dots],
            "symbol": ["circle" if seed.is_counted else "circle-open" for _, seed in dots],
            "size": 8,
            "opacity": 0.8,
        },
        text=[f"{plain_text(config.name)}, {plain_text(seed.name)}" for config, seed in dots],
        customdata=[seed.run for _, seed in dots],
        name="seed",
        showlegend=False,
        hovertemplate=f"%{{text}}: {score}<extra></extra>",
        meta={"kind": "seed"},
    )


def _in_words(config: ConfigScores) -> str:
    """The numbers of a config."""
    median = f"median {config.median:,.5g}"
    if config.low is not None and config.high is not None:
        median += f" [{config.low:,.5g}, {config.high:,.5g}]"
    seeds = f"{config.n} seed{'s' if config.n != 1 else ''}"
    return f"{median}, interquartile mean {config.iqm:,.5g}, {seeds}"


def _say(figure: Figure, what: str, plate: Plate) -> Figure:
    """A figure without numbers that says why."""
    figure.add_annotation(
        name="no_values",
        text="<br>".join(wrap(plain_text(what), 48)),
        x=0.5,
        xref="paper",
        y=0.5,
        yref="paper",
        showarrow=False,
        font={"color": muted(plate.theme), "size": 13},
    )
    for axis in ("xaxis", "yaxis"):
        figure.layout[axis] = figure.layout.get(axis, {}) | {"visible": False}
    return figure
