"""Figures of groups of seeds."""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
from sqlalchemy.orm import Session

from backend.db import Run
from backend.figures.seed_curve import Group, seed_curve
from backend.figures.service import Look, subject
from backend.metrics import service as metrics
from backend.metrics.catalogue import describe
from backend.metrics.charts import Axes
from backend.metrics.grouping import INTERVAL_NAMES, Interval, group_key, settings_of
from backend.metrics.seed_groups import group_curve

_NAMED_DIFFERENCES = 3


def draw_seed_curve(
    session: Session,
    run_ids: Sequence[str],
    metric: str,
    sources: Sequence[str],
    axes: Axes,
    interval: Interval,
    look: Look,
) -> "go.Figure":
    """One metric of some runs, those that differ in their seed alone as one curve.

    Raises:
        NotFound: there is no such run.
    """
    found = metrics.find_runs(session, run_ids)
    chosen = metrics.choose(session, run_ids, [metric], sources)
    grouped = list(metrics.seed_groups(chosen, found))
    firsts: dict[str, Run] = {}
    for run in found.values():
        firsts.setdefault(group_key(run.spec), run)
    names = dict(zip(firsts, group_names(list(firsts.values())), strict=True))
    groups = []
    for members in grouped:
        key, source = group_key(found[members[0].run_id].spec), members[0].source
        curve = group_curve(session, members, axes, interval) if look.with_data else None
        groups.append(
            Group(
                id=key,
                name=names[key] + (f", {source}" if source else ""),
                n_seeds=len(members),
                metric=metric,
                source=source,
                columns=curve.grid if curve else None,
                n_total=curve.n_rows if curve else 0,
                n_shown=curve.n_points if curve else 0,
            )
        )
    return seed_curve(
        groups,
        metric=metric,
        x=axes.x,
        interval=INTERVAL_NAMES[interval],
        order=list(firsts),
        smooth=axes.smooth,
        title=f"{describe(metric).title}, {subject(found.values())}",
        theme=look.theme,
        width_px=look.width_px,
    )


def group_names(firsts: Sequence[Run]) -> list[str]:
    """What to call groups, by one run of each: their group's name or what they are, and how they differ."""
    names = [run.group or subject([run]) for run in firsts]
    settings = [_settings(run.spec) for run in firsts]
    told = []
    for name, own in zip(names, settings, strict=True):
        alike = [one for other, one in zip(names, settings, strict=True) if other == name]
        keys = [key for key in own if any(one.get(key) != own[key] for one in alike)]
        told.append(f"{name} ({_told(own, keys)})" if len(alike) > 1 and keys else name)
    return told


def _settings(spec: dict[str, Any]) -> dict[str, Any]:
    shown = {name: spec[name] for name in ("algorithm", "environment", "group")}
    settings = settings_of(spec)
    return {**shown, **settings["config"], **settings["environment_config"]}


def _told(settings: dict[str, Any], keys: Sequence[str]) -> str:
    told = [f"{key} = {settings[key]}" for key in keys if settings.get(key) is not None]
    return ", ".join(told[:_NAMED_DIFFERENCES])
