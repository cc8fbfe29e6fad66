"""Speed of sorting, filtering and serialising a long list of runs."""

import random
from statistics import median, quantiles
from time import perf_counter

from sqlalchemy import Engine

from backend.analysis.comparisons import run_groups
from backend.db import Series
from backend.db.engine import reading, writing
from backend.runs.runs import listing, repository, service
from backend.runs.runs.filters import Node
from backend.runs.runs.schemas import RunOut, RunPage
from backend.specs.run import parse_run_spec

N_RUNS = 10_000
PAGE_ROWS = 100
"""Page size of the web page."""

FILTER = "environment:Pong tag:baseline or tag:new score>0"
METRIC = "eval/noop_starts/mean_return"
SETTING_FILTER = f"config.learning_rate>=1e-3 and {METRIC}>0"
"""About half of the runs match each of the two conditions."""
ENVS = ("ALE/Pong-v5", "ALE/Breakout-v5", "CartPole-v1")

_RUNS_PER_COMMIT = 1000
_REPEATS = 9
_GROUP_REPEATS = 40
"""Enough for the 95th percentile."""


def bench(db_engine: Engine) -> dict[str, float]:
    """Measure on a migrated database; `N_RUNS` runs stay in it.

    Returns:
        `list_ms`: median time to the JSON of the first page of the runs that match `FILTER`, best score
        first, with their total; `list_all_ms`: the same for all runs; `list_setting_ms`: for the runs that
        match `SETTING_FILTER`, sorted by the setting; `list_metric_ms`: sorted by the metric;
        `groups_first_ms`: time to the JSON of the first page of groups of all runs, before anything is known
        of their specifications; `groups_ms` and `groups_p95_ms`: median and 95th percentile of later ones.
    """
    _fill(db_engine)
    first_ms = _groups_ms(db_engine)
    groups_ms = [_groups_ms(db_engine) for _ in range(_GROUP_REPEATS)]
    return {
        "groups_first_ms": first_ms,
        "groups_ms": median(groups_ms),
        "groups_p95_ms": quantiles(groups_ms, n=20, method="inclusive")[-1],
        "list_ms": median(_list_ms(db_engine, FILTER) for _ in range(_REPEATS)),
        "list_all_ms": median(_list_ms(db_engine, None) for _ in range(_REPEATS)),
        "list_setting_ms": median(
            _list_ms(db_engine, SETTING_FILTER, "config.learning_rate") for _ in range(_REPEATS)
        ),
        "list_metric_ms": median(_list_ms(db_engine, SETTING_FILTER, METRIC) for _ in range(_REPEATS)),
    }


def _fill(db_engine: Engine) -> None:
    """Create runs of several environments, half of them tagged, one in ten without a score."""
    rng = random.Random(0)  # noqa: S311 - reproducible
    specs = [
        parse_run_spec(
            {
                "algorithm": "paac",
                "environment": env,
                "config": {"learning_rate": learning_rate},
                "stop": {"agent_steps": 10**8},
                "tags": tags,
            }
        )
        for env in ENVS
        for learning_rate in (1e-4, 1e-3)
        for tags in ([], [], ["baseline"], ["new", "wide"])
    ]
    for first in range(0, N_RUNS, _RUNS_PER_COMMIT):
        with writing(db_engine) as session:
            for at in range(first, min(first + _RUNS_PER_COMMIT, N_RUNS)):
                spec = specs[at % len(specs)].model_copy(update={"seed": at})
                run = service.create(session, spec)
                run.score = rng.gauss(0.0, 10.0) if at % 10 else None
                if run.score is not None:
                    session.add(Series(run_id=run.id, metric=METRIC, n_points=1, last_value=run.score))


def _filter(text: str | None) -> Node:
    return listing.build_filter(
        states=[],
        algorithms=[],
        environments=[],
        tags=[],
        group=None,
        project=None,
        archived=False,
        search=None,
        filter_text=text,
    )


def _groups_ms(db_engine: Engine) -> float:
    started = perf_counter()
    with reading(db_engine) as session:
        page = run_groups.page(session, _filter(None), "seed", None, PAGE_ROWS, None)
        page.model_dump_json()
    return 1000 * (perf_counter() - started)


def _list_ms(db_engine: Engine, filter_text: str | None, sort: str = "score") -> float:
    started = perf_counter()
    query = _filter(filter_text)
    with reading(db_engine) as session:
        rows, next_cursor, total = repository.page(
            session, query, sort=sort, descending=True, limit=PAGE_ROWS, cursor=None
        )
        page = RunPage(items=[RunOut.of(run) for run in rows], next_cursor=next_cursor, total=total)
        page.model_dump_json()
    return 1000 * (perf_counter() - started)
