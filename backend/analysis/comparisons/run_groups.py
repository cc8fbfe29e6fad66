"""The list of runs in groups."""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

import numpy as np
from sqlalchemy.orm import Session

from backend.analysis.comparisons import repository
from backend.analysis.comparisons.schemas import EstimateOut, GroupSort, RunGroup, RunGroupPage
from backend.db.keyset import BadCursor
from backend.platform.errors import Invalid
from backend.runs.runs import listing
from backend.runs.runs.fields import ConfigField, UnknownField, resolve
from backend.runs.runs.filters import Node
from backend.runs.runs.groups import (
    Brief,
    compute_once,
    is_early,
    json_number,
    keys_of,
    surplus_runs,
    unbroken,
)
from backend.runs.runs.names import ViewNames, names_of_groups, value_texts
from backend.runs.runs.repository import lineage_roots, specs_of
from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS
from backend.specs.problems import quoted
from backend.specs.states import BROKEN_OFF, RunState
from backend.statistics.estimates import median

_SHOWN_RUNS = 100
_STATES = frozenset(RunState)
_COLUMNS = ("seed", "algorithm", "environment", "group", "state", "host", "queue")


def page(
    session: Session, node: Node, by: str, sort: GroupSort | None, limit: int, cursor: str | None
) -> RunGroupPage:
    """Groups of the matching runs.

    Args:
        session: a reading session.
        node: the filter, as for the list of runs.
        by: what the runs of a group have in common; `config` is all but the seed, as `seed` is.
        sort: their order; None: by the value of a setting, otherwise the group with the latest run first.
        limit: maximum number of groups.
        cursor: id of the latest run of the last group of the previous page.

    Raises:
        Invalid: runs cannot be grouped by this.
        BadCursor: no group of this list starts with that run.
    """
    by = "seed" if by == "config" else by
    setting = _setting(by)
    members, held = _members(session, node, by, setting)
    groups = list(members.items())
    if setting is not None:
        groups.sort(key=lambda group: _by_value(held[group[1][0].id]))
    if sort is not None:
        groups = _sorted(session, groups, by, setting, held, sort)
    start = 0
    if cursor is not None:
        latest = [runs[0].id for _, runs in groups]
        if cursor not in latest:
            raise BadCursor(cursor)
        start = latest.index(cursor) + 1
    shown = groups[start : start + limit]
    # The pages stand below each other: all groups are named in one view.
    view = _names(session, [runs[0] for _, runs in groups], by, setting, held)
    more = start + limit < len(groups)
    lineages = lineage_roots(session, (run for _, runs in shown for run in runs))
    return RunGroupPage(
        items=[
            _group(session, key, name, runs, lineages)
            for (key, runs), name in zip(shown, view.names[start : start + limit], strict=True)
        ],
        shared_name=view.shared,
        next_cursor=shown[-1][1][0].id if more and shown else None,
        total=len(groups),
    )


def runs_of(session: Session, node: Node, by: str, keys: Collection[str]) -> list[str]:
    """Ids of the matching runs that are in these groups.

    Args:
        session: a reading session.
        node: the filter, as for the list of runs.
        by: as in `page`.
        keys: keys of groups; `%2C` and a comma are the same.

    Raises:
        Invalid: runs cannot be grouped by this.
    """
    by = "seed" if by == "config" else by
    members, _ = _members(session, node, by, _setting(by))
    wanted = {key.replace(",", "%2C") for key in keys}
    return [run.id for key, runs in members.items() if key.replace(",", "%2C") in wanted for run in runs]


def _members(
    session: Session, node: Node, by: str, setting: ConfigField | None
) -> tuple[dict[str, list[Brief]], dict[str, Any]]:
    """The matching runs by the key of their group, and the value of the setting of each, if they are grouped
    by one."""
    if setting is not None:
        listing.check_known(session, "by", setting)
    briefs = repository.briefs(session, node)
    held = {} if setting is None else _values_of(session, briefs, setting)
    members: dict[str, list[Brief]] = {}
    for run, key in zip(briefs, _keys(session, briefs, by, setting, held), strict=True):
        members.setdefault(key, []).append(run)
    return members, held


def _sorted(
    session: Session,
    groups: list[tuple[str, list[Brief]]],
    by: str,
    setting: ConfigField | None,
    held: Mapping[str, Any],
    sort: GroupSort,
) -> list[tuple[str, list[Brief]]]:
    """Groups by a value that their rows show; those without it last, equal ones in the order given."""
    field, descending = sort.removeprefix("-"), sort.startswith("-")
    values: list[Any]
    if field == "created_at":
        values = [runs[0].id for _, runs in groups]
    elif field == "name" and setting is not None:
        firsts = [held[runs[0].id] for _, runs in groups]
        values = [None if value is None else _by_value(value) for value in firsts]
    elif field == "name":
        view = _names(session, [runs[0] for _, runs in groups], by, None, held)
        values = [name.casefold() for name in view.names]
    elif field == "n":
        values = [len(runs) for _, runs in groups]
    else:
        lineages = lineage_roots(session, (run for _, runs in groups for run in runs))
        rows = [_group(session, key, "", runs, lineages) for key, runs in groups]
        values = [row.score.value if field == "score" else getattr(row, field) for row in rows]
        if field == "score":
            # A configuration with failed seeds stands below: its score is that of the survivors.
            below = [(row.n_broken_off > 0) != descending for row in rows]
            values = [
                None if value is None else (last, value) for value, last in zip(values, below, strict=True)
            ]
    with_value = [pair for pair in zip(values, groups, strict=True) if pair[0] is not None]
    without = [group for value, group in zip(values, groups, strict=True) if value is None]
    with_value.sort(key=lambda pair: pair[0], reverse=descending)
    return [group for _, group in with_value] + without


def _setting(by: str) -> ConfigField | None:
    """The setting to group by, if it is one.

    Raises:
        Invalid: runs cannot be grouped by this.
    """
    if by in _COLUMNS:
        return None
    try:
        field = resolve(by)
    except UnknownField as error:
        raise Invalid.field("by", str(error)) from None
    if not isinstance(field, ConfigField):
        raise Invalid.field(
            "by", f"runs cannot be grouped by {quoted(by)}; use {', '.join(_COLUMNS)} or a setting"
        )
    return field


def _keys(
    session: Session,
    runs: Sequence[Brief],
    by: str,
    setting: ConfigField | None,
    held: Mapping[str, Any],
) -> list[str]:
    """The key of each run's group. Clients list keys separated by commas."""
    if by == "seed":
        keys = keys_of(runs, specs_of(session))
        return [keys[run.id] for run in runs]
    if setting is not None:
        return [quote(json.dumps(json_number(held[run.id])), safe="") for run in runs]
    values = [str(getattr(run, by) or "") for run in runs]
    return values if by in ("algorithm", "environment") else [quote(value, safe="") for value in values]


def _values_of(session: Session, runs: Sequence[Brief], setting: ConfigField) -> dict[str, Any]:
    """The value of a setting in each run's spec, by id; None for a run without it."""

    def value_in(run: Brief) -> Any:
        value: Any = run.spec
        for key in setting.path:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    return compute_once(runs, setting.name, value_in, specs_of(session))


def _by_value(value: Any) -> tuple[bool, bool, float, str]:
    """Sorts numbers, then text, then runs without a value."""
    number = float(value) if isinstance(value, int | float) else 0.0
    return value is None, isinstance(value, str), number, str(value)


def _names(
    session: Session,
    firsts: Sequence[Brief],
    by: str,
    setting: ConfigField | None,
    held: Mapping[str, Any],
) -> ViewNames:
    """Names of groups, given one run of each."""
    if by == "seed":
        return names_of_groups(firsts, specs_of(session))
    if setting is not None:
        texts = value_texts([held[run.id] for run in firsts])
        return ViewNames("", [f"{setting.title}: {text}" for text in texts])
    values = [getattr(run, by) for run in firsts]
    if by not in ("algorithm", "environment"):
        return ViewNames("", [f"{by.capitalize()}: {value}" if value else f"No {by}" for value in values])
    known = ALGORITHMS if by == "algorithm" else ENVIRONMENTS
    titles = [known[value].title if value in known else value for value in values]
    alike = Counter(titles)
    return ViewNames(
        "",
        [
            f"{title} ({value})" if alike[title] > 1 else title
            for title, value in zip(titles, values, strict=True)
        ],
    )


def _state(run: Brief) -> RunState:
    """The run's state; of a damaged row as `backend.db.Run` shows it."""
    return RunState(run.state) if run.state in _STATES else RunState.FAILED


def _group(
    session: Session, key: str, name: str, runs: Sequence[Brief], lineages: Mapping[str, str]
) -> RunGroup:
    algorithms = {run.algorithm for run in runs}
    environments = {run.environment for run in runs}
    one_environment = len(environments) == 1
    whole = unbroken(runs)
    scored = {run.id for run in runs if run.score is not None and run.id in whole and not is_early(run)}
    keys = partial(keys_of, specs=specs_of(session))
    surplus = surplus_runs(runs, lineages, scored, keys)
    samples = [run for run in runs if run.id in scored and run.id not in surplus and one_environment]
    scores = [run.score for run in samples]
    bests = [run.best_return for run in runs if run.best_return is not None and one_environment]
    return RunGroup(
        key=key,
        name=name,
        algorithm=algorithms.pop() if len(algorithms) == 1 else None,
        environment=environments.pop() if one_environment else None,
        n=len(runs),
        states=dict(Counter(_state(run) for run in runs)),
        runs=[run.id for run in runs[:_SHOWN_RUNS]],
        n_scored=len(scores),
        n_broken_off=sum(_state(run) in BROKEN_OFF for run in runs if run.id not in surplus),
        score=EstimateOut.of(median(np.array(scores))) if scores else EstimateOut.point(None),
        scores=[score for score in scores[:_SHOWN_RUNS] if score is not None],
        best_return=max(bests, default=None),
        agent_steps=sum(run.agent_steps for run in runs if run.step_unit == "agent_steps"),
        iterations=sum(run.agent_steps for run in runs if run.step_unit == "iterations"),
    )
