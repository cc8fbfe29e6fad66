"""A list of runs by what they have in common."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from sqlalchemy.orm import Session

from backend.comparisons import repository
from backend.comparisons.schemas import By, EstimateOut, RunGroup, RunGroupPage
from backend.db import Run
from backend.db.keyset import BadCursor
from backend.figures.seeds import group_names
from backend.metrics.grouping import group_key, summary
from backend.runs.filters import Node
from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS

_SHOWN_RUNS = 100


def page(session: Session, asked: Node, by: By, limit: int, cursor: str | None) -> RunGroupPage:
    """Groups of the runs that `asked` describes; that with the newest run first.

    Args:
        session: a reading session.
        asked: as for the list of runs.
        by: what the runs of a group share.
        limit: at most this many groups.
        cursor: id of the newest run of the last group one has.

    Raises:
        BadCursor: no group of this list begins with that run.
    """
    members: dict[str, list[Run]] = {}
    for run in repository.briefs(session, asked):
        members.setdefault(_key(run, by), []).append(run)
    groups = list(members.items())
    begin = 0
    if cursor is not None:
        newest = [runs[0].id for _, runs in groups]
        if cursor not in newest:
            raise BadCursor(cursor)
        begin = newest.index(cursor) + 1
    shown = groups[begin : begin + limit]
    names = _names([runs[0] for _, runs in shown], by)
    more = begin + limit < len(groups)
    return RunGroupPage(
        items=[_group(key, name, runs) for (key, runs), name in zip(shown, names, strict=True)],
        next_cursor=shown[-1][1][0].id if more and shown else None,
        total=len(groups),
    )


def _key(run: Run, by: By) -> str:
    return group_key(run.spec) if by == "seed" else str(getattr(run, by))


def _names(firsts: Sequence[Run], by: By) -> list[str]:
    if by == "seed":
        return group_names(firsts)
    known = ALGORITHMS if by == "algorithm" else ENVIRONMENTS
    ids = [str(getattr(run, by)) for run in firsts]
    return [known[each].title if each in known else each for each in ids]


def _group(key: str, name: str, runs: Sequence[Run]) -> RunGroup:
    algorithms = {run.algorithm for run in runs}
    worlds = {run.environment for run in runs}
    one_world = len(worlds) == 1
    scores = [run.score for run in runs if run.score is not None and one_world]
    mean = summary(np.array([[score] for score in scores]).reshape(-1, 1), "ci95")
    bests = [run.best_return for run in runs if run.best_return is not None and one_world]
    return RunGroup(
        key=key,
        name=name,
        algorithm=algorithms.pop() if len(algorithms) == 1 else None,
        environment=worlds.pop() if one_world else None,
        n=len(runs),
        states=dict(Counter(run.state for run in runs)),
        runs=[run.id for run in runs[:_SHOWN_RUNS]],
        n_scored=len(scores),
        score=EstimateOut(value=mean["mean"][0], low=mean["low"][0], high=mean["high"][0]),
        best_return=max(bests, default=None),
        agent_steps=sum(run.agent_steps for run in runs),
    )
