"""A score of runs against one of their settings."""

from collections.abc import Sequence
from typing import Any, Literal

from sqlalchemy.orm import Session

from backend.analysis.figures.styles import run_styles, styles_by_group
from backend.analysis.metrics import service as metrics
from backend.db import Run
from backend.drawing.figure import Figure, FigureOptions
from backend.drawing.palette import IN_ORDER, WantedStyles
from backend.drawing.scatter import Dot, scatter_figure
from backend.platform.errors import Invalid
from backend.runs.runs import listing
from backend.runs.runs.fields import ConfigField, MetricField, RunField, UnknownField, resolve, setting_title
from backend.runs.runs.groups import configs_of, is_early, subject_key
from backend.runs.runs.names import names_of_runs, names_of_subjects, subject
from backend.specs.problems import quoted

Score = Literal["score", "best_return"]
SCORES: dict[Score, str] = {"score": "Score (mean of the last 100 returns)", "best_return": "Best return"}


def setting_field(name: str, parameter: str = "x") -> RunField | ConfigField:
    """The field of runs, or the setting, against which scores are drawn.

    Args:
        name: its name.
        parameter: the parameter of the request that names it.

    Raises:
        Invalid: there is none of this name.
    """
    try:
        field = resolve(name)
    except UnknownField as error:
        raise Invalid.field(parameter, str(error)) from None
    if isinstance(field, MetricField):
        raise Invalid.field(
            parameter, f"{quoted(name)} is a metric: use a setting, such as config.learning_rate"
        )
    return field


def setting_value(run: Run, field: RunField | ConfigField) -> Any:
    """A run's value of a field or setting; None if it has none."""
    if isinstance(field, RunField):
        return getattr(run, field.name, None)
    value: Any = run.spec | configs_of(run.spec)
    for key in field.path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def has_changed(run: Run, field: RunField | ConfigField) -> bool:
    """Whether the run changed a setting during training, so that it has no single value."""
    return field.name.rpartition(".")[2] in run.departures


def draw_scatter(
    session: Session,
    run_ids: Sequence[str],
    setting: str,
    score: Score,
    options: FigureOptions,
    styles: WantedStyles = IN_ORDER,
    *,
    grouped: bool = False,
) -> Figure:
    """A score of some runs against one of their settings, each run in its style or, grouped, in its group's.

    Raises:
        NotFound: there is no such run.
        Invalid: there is no such setting.
    """
    runs_by_id = metrics.find_runs(session, run_ids)
    field = setting_field(setting)
    listing.check_known(session, "x", field)
    shown = [
        (run, value, subject_key(run))
        for run in runs_by_id.values()
        if (value := setting_value(run, field)) is not None and getattr(run, score) is not None
        if not has_changed(run, field) and not (score == "score" and is_early(run))
    ]
    n_changed = sum(has_changed(run, field) for run in runs_by_id.values())
    examples = {key: run for run, _, key in shown}
    panels = dict(zip(examples, names_of_subjects(list(examples.values())), strict=True))
    names = dict(zip(runs_by_id, names_of_runs(list(runs_by_id.values())).names, strict=True))
    dots = [
        Dot(
            run.id,
            names[run.id],
            # Plotly places no dot at a truth value.
            value if isinstance(value, int | float) and not isinstance(value, bool) else str(value),
            getattr(run, score),
            key,
            panels[key],
        )
        for run, value, key in shown
    ]
    x = setting_title(setting)
    title = f"{SCORES[score]} by {x}, {subject(runs_by_id.values())}"
    if n_changed:
        title += f"; {n_changed} left out that changed it during training"
    return scatter_figure(
        dots,
        x=x,
        y=SCORES[score],
        title=title,
        styles=styles_by_group(runs_by_id, styles) if grouped else run_styles(runs_by_id, styles),
        theme=options.theme,
        width_px=options.width_px,
    )
