"""Styles of the runs and groups of a view."""

from collections.abc import Iterable, Mapping

from backend.db import Run
from backend.drawing.palette import WantedStyles, distinct_styles
from backend.runs.runs.groups import group_key


def run_styles(run_ids: Iterable[str], wanted: WantedStyles) -> dict[str, int]:
    """A style for each run of a view, in the order of the runs."""
    ordered = list(run_ids)
    return distinct_styles(ordered, dict(zip(ordered, wanted.of_runs, strict=False)))


def styles_by_group(runs_by_id: Mapping[str, Run], wanted: WantedStyles) -> dict[str, int]:
    """For each run of a view the style of its group, as `seed_curve` gives it."""
    groups = {id_: group_key(run) for id_, run in runs_by_id.items()}
    styles = distinct_styles(groups.values(), wanted.of_groups)
    return {id_: styles[group] for id_, group in groups.items()}
