"""The scores of a sweep against one of its settings."""

import json

from backend.drawing.figure import Figure
from backend.drawing.palette import Theme
from backend.drawing.scatter import ConfigurationDots, Standing, configurations_figure
from backend.experiments.sweeps.schemas import ConfigurationOut, SweepDetail
from backend.platform.errors import Invalid
from backend.runs.runs.fields import setting_title
from backend.specs.problems import quoted


def draw_scatter(sweep: SweepDetail, setting: str, *, log: bool | None, theme: Theme) -> Figure:
    """The score of each finished seed by a setting that varies, and each configuration's interquartile mean.

    Args:
        sweep: the sweep.
        setting: path of the setting.
        log: whether the axis of the setting is logarithmic; None: as suits the values.
        theme: light or dark.

    Raises:
        Invalid: the setting does not vary.
    """
    if setting not in sweep.spec.space:
        varied = ", ".join(sweep.spec.space)
        raise Invalid.field("setting", f"{quoted(setting)} does not vary in this sweep; use one of {varied}")
    x = setting_title(setting)
    of = "last 100 episodes" if sweep.spec.objective == "training" else "last evaluation"
    scored = [configuration for configuration in sweep.configurations if configuration.iqm is not None]
    return configurations_figure(
        [_dots(sweep, configuration, setting) for configuration in scored],
        x=x,
        y=f"Mean return, {of}",
        title=f"Score by {x}, {sweep.name}",
        log=log,
        theme=theme,
    )


def _dots(sweep: SweepDetail, configuration: ConfigurationOut, setting: str) -> ConfigurationDots:
    value = configuration.settings.get(setting)
    is_plain = isinstance(value, int | float | str) and not isinstance(value, bool)
    scored = [(run.score, run.seed) for run in configuration.runs if run.score is not None]
    is_best = sweep.best is not None and configuration.number == sweep.best.number
    standing: Standing = "eliminated" if configuration.eliminated else "best" if is_best else ""
    return ConfigurationDots(
        name=configuration.name,
        x=value if is_plain and value is not None else json.dumps(value),
        scores=[score for score, _ in scored],
        seeds=[seed for _, seed in scored],
        iqm=configuration.iqm or 0.0,
        standing=standing,
    )
