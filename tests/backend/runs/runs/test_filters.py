from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine

from backend.analysis.metrics import repository as metrics
from backend.db import Run
from backend.db.engine import reading, writing
from backend.runs.runs import filters, repository
from backend.runs.runs.filters import MAX_TERMS, All, BadFilter, Either, Not, Term, Word
from backend.specs.events import PointsEvent
from backend.specs.states import RunState
from tests.support.rows import make_run

A, B, C = Term("tag", ":", "a"), Term("tag", ":", "b"), Term("tag", ":", "c")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("", All(())),
        ("tag:a", A),
        ("tag:a tag:b", All((A, B))),
        ("tag:a or tag:b", Either((A, B))),
        ("tag:a tag:b or tag:c", All((A, Either((B, C))))),
        ("tag:a and tag:b or tag:c", Either((All((A, B)), C))),
        ("(tag:a tag:b) OR tag:c", Either((All((A, B)), C))),
        ("not tag:a tag:b", All((Not(A), B))),
        ("not (tag:a or tag:b)", Not(Either((A, B)))),
        ("score>10", Term("score", ">", 10.0)),
        ("Score<=-1e3", Term("score", "<=", -1000.0)),
        ('name="two words" x', All((Term("name", "=", "two words"), Word("x")))),
        ('name:"a \\"b\\" \\\\"', Term("name", ":", 'a "b" \\')),
        ('"or"', Word("or")),
        ("environment:ALE/Pong-v5", Term("environment", ":", "ALE/Pong-v5")),
        ("archived:true", Term("archived", ":", True)),
        ("config.Learning_Rate>=1e-3", Term("config.learning_rate", ">=", 0.001)),
        ("config.recurrent=true", Term("config.recurrent", "=", True)),
        ("config.lr>=1e-3", Term("config.lr", ">=", 0.001)),
        ("config.env_seed=9007199254740992", Term("config.env_seed", "=", 2.0**53)),
        ("config.env_seed=9007199254740993", Term("config.env_seed", "=", "9007199254740993")),
        ("config.env_seed!=-9007199254740993", Term("config.env_seed", "!=", "-9007199254740993")),
        ("config.env_seed>9007199254740993", Term("config.env_seed", ">", 2.0**53)),
        ("Config.Optim.Name:adam", Term("config.Optim.Name", ":", "adam")),
        ("eval/plain/mean_return.best>1", Term("eval/plain/mean_return.best", ">", 1.0)),
        ('"a>b" x', All((Word("a>b"), Word("x")))),
    ],
)
def test_parse_returns_expected_tree(text: str, tree: filters.Node) -> None:
    assert filters.parse(text) == tree


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("colour:red", 'unknown field "colour"'),
        ("scor>1", 'unknown field "scor": did you mean score'),
        ("stop.scor>1", 'unknown field "stop.scor": did you mean stop.score'),
        ("score:high", "requires a number"),
        ("learning_rate:0.003", "did you mean config.learning_rate"),
        ("config.my_setting>high", "requires a number with >"),
        ("config.network>nips", "does not support >"),
        ("eval/plain/mean_return>high", "requires a number"),
        ("score > 10", '">" stands alone'),
        ("score>", "lacks a value"),
        ("12:30", "double quotes"),
        ("=", "stands alone"),
        ("score>nan", "requires a number"),
        ("score>1e999", "requires a number"),
        ("name>3", "does not support"),
        ("state:flying", "unknown state"),
        ("archived:maybe", "true or false"),
        ("created_at>soon", "requires a time"),
        ("(tag:a", "parenthesis is missing"),
        ("tag:a)", "unmatched closing parenthesis"),
        ("tag:a or", "missing at the end"),
        ("or tag:a", 'missing before "or"'),
        ("not", "missing at the end"),
        ('name:"my run', 'the double quote before "my run" is not closed'),
        ('"open', 'the double quote before "open" is not closed'),
        ('"', "the double quote at the end is not closed"),
        ("(" * 50 + "x" + ")" * 50, "deeply"),
        ("not " * 50 + "x", "deeply"),
        (" or ".join("a" * (MAX_TERMS + 1)), f"has {MAX_TERMS + 1} terms; the maximum is {MAX_TERMS}"),
        ("a\0", "null characters"),
        ("\ud800", "surrogates"),
    ],
)
def test_parse_raises_bad_filter_with_reason(text: str, reason: str) -> None:
    with pytest.raises(BadFilter, match=reason):
        filters.parse(text)


def test_parse_does_not_count_ids_as_terms() -> None:
    excluded = filters.parse("archived:false " + " ".join(f"id!={n:026}" for n in range(60)))
    assert isinstance(excluded, All)
    assert excluded.parts[-1] == Term("id", "!=", f"{59:026}")
    with pytest.raises(BadFilter, match=f"has {MAX_TERMS + 1} terms"):
        filters.parse(" or ".join(["id:a"] * (MAX_TERMS + 1)))


@given(st.text())
def test_parse_of_any_text_succeeds_or_raises_bad_filter(text: str) -> None:
    with suppress(BadFilter):
        filters.parse(text)


@pytest.fixture
def some_runs(engine: Engine) -> Engine:
    facts: list[tuple[dict[str, Any], RunState, float | None]] = [
        ({"name": "one", "tags": ["baseline"], "group": "g", "seed": 1}, RunState.RUNNING, 12.0),
        (
            {"name": "two", "tags": ["new", "Ünï"], "environment": "ALE/Pong-v5", "seed": 2},
            RunState.QUEUED,
            15.0,
        ),
        ({"name": "three 50%", "environment": "ALE/Pong-v5", "seed": 3}, RunState.QUEUED, None),
        ({"name": "four", "tags": ["newer"], "notes": "odd", "seed": 4}, RunState.FAILED, -3.0),
    ]
    for changes, state, score in facts:
        run = make_run(engine, state, **changes)
        with writing(engine) as session:
            locked = repository.get(session, run.id, for_update=True)
            assert locked is not None
            locked.score = score
    return engine


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("", [1, 2, 3, 4]),
        ("algorithm:paac environment:pong score>10 tag:baseline or tag:new", [2]),
        ("algorithm:paac score>10 tag:baseline or tag:new", [1, 2]),
        ("tag:new", [2]),
        ("tag:NEW", [2]),
        ("tag=NEW", []),
        ("algorithm:PAAC tag:Baseline", [1]),
        ("State:Queued", [2, 3]),
        ("group:G", [1]),
        ("not group:G", [2, 3, 4]),
        ("tag:Ünï", [2]),
        ("tag!=new", [1, 3, 4]),
        ("group!=g", [2, 3, 4]),
        ("not group:g", [2, 3, 4]),
        ("score>10", [1, 2]),
        ("not score>10", [3, 4]),
        ("score<=-3", [4]),
        ("score!=12", [2, 3, 4]),
        ("seed>=2 seed<4", [2, 3]),
        ("state:queued or state:failed", [2, 3, 4]),
        ("environment=ALE/Pong-v5", [2, 3]),
        ("environment=pong", []),
        ("name:50%", [3]),
        ("name:5_%", []),
        ("ODD", [4]),
        ("baseline", [1]),
        ("created_at>2020-01-01", [1, 2, 3, 4]),
        ("created_at<2020-01-01", []),
        ("archived:true", []),
        ("host:nowhere", []),
        ("not host:nowhere", [1, 2, 3, 4]),
    ],
)
def test_filter_selects_expected_runs(some_runs: Engine, text: str, seeds: list[int]) -> None:
    with reading(some_runs) as session:
        rows, _, total = repository.page(
            session, filters.parse(text), sort="seed", descending=False, limit=10, cursor=None
        )
    assert [row.seed for row in rows] == seeds
    assert total == len(seeds)


@pytest.fixture
def measured_runs(engine: Engine) -> Engine:
    """Runs that differ in settings and in a metric: the first has it twice, the last not at all."""
    for seed, (learning_rate, values) in enumerate([(0.001, [30.0, 20.0]), (0.003, [10.0]), (0.01, [])]):
        config = {"learning_rate": learning_rate, "standardise": seed == 2}
        run = make_run(engine, seed=seed, name=f"seed {seed}", config=config)
        n = len(values)
        steps = list(range(n))
        event = PointsEvent(
            metric=METRIC, agent_steps=steps, frames=steps, wall_time_s=steps, episodes=steps, value=values
        )
        with writing(engine) as session:
            metrics.append(session, run.id, 1, 1, [event] if n else [])
    return engine


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("config.n=10000000000000000", [0, 1, 2]),
        ("config.n!=10000000000000000", [3, 4, 5, 6]),
        ("config.n=9500000000000000", [3]),
        ("config.n!=9500000000000000", [0, 1, 2, 4, 5, 6]),
    ],
)
def test_filter_by_a_large_whole_number_selects_floats_too(
    engine: Engine, text: str, seeds: list[int]
) -> None:
    settings: list[Any] = [1e16, 10**16, "10000000000000000", 9.5e15, 10**16 + 1, "e", None]
    for seed, value in enumerate(settings):
        run = make_run(engine, seed=seed)
        with writing(engine) as session:
            stored = session.get_one(Run, run.id)
            stored.spec = stored.spec | {"config": {"n": value} if value is not None else {}}
    with reading(engine) as session:
        rows, *_ = repository.page(
            session, filters.parse(text), sort="seed", descending=False, limit=10, cursor=None
        )
    assert [row.seed for row in rows] == seeds


METRIC = "eval/plain/mean_return"


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("config.learning_rate>=3e-3", [1, 2]),
        ("config.learning_rate=0.001", [0]),
        ("config.learning_rate!=0.001", [1, 2]),
        ("config.network=mlp", [0, 1, 2]),
        ("config.network:MLP", [0, 1, 2]),
        ("config.standardise=true", [2]),
        ("not config.standardise=true", [0, 1]),
        ("config.n_actors>0", []),
        ("stop.agent_steps=10000 device=auto", [0, 1, 2]),
        ("eval/plain/mean_return>15", [0]),
        ("eval/plain/mean_return.best>=30", [0]),
        ("eval/plain/mean_return.mean=25", [0]),
        ("eval/plain/mean_return.min<20", [1]),
        ("not eval/plain/mean_return>15", [1, 2]),
        ("config.learning_rate>=1e-3 and eval/plain/mean_return<15 or seed=2", [1, 2]),
    ],
)
def test_filter_compares_settings_and_metrics(measured_runs: Engine, text: str, seeds: list[int]) -> None:
    with reading(measured_runs) as session:
        rows, _, total = repository.page(
            session, filters.parse(text), sort="seed", descending=False, limit=10, cursor=None
        )
    assert ([row.seed for row in rows], total) == (seeds, len(seeds))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    ("sort", "seeds"),
    [
        ("config.learning_rate", [0, 1, 2]),
        ("config.standardise", [0, 1, 2]),
        (METRIC, [1, 0]),
        (f"{METRIC}.best", [1, 0]),
    ],
)
def test_pages_sorted_by_setting_or_metric_hold_each_run_once(
    measured_runs: Engine, sort: str, seeds: list[int], descending: bool
) -> None:
    counts: list[int] = []
    cursor = None
    for _ in range(3):
        with reading(measured_runs) as session:
            rows, cursor, _ = repository.page(
                session, All(()), sort=sort, descending=descending, limit=1, cursor=cursor
            )
        counts += [row.seed for row in rows]
    assert cursor is None
    # Runs without a value come last in both directions.
    ordered = seeds[::-1] if descending else seeds
    assert counts == ordered + [seed for seed in range(3) if seed not in seeds]


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("name:école", [1, 2]),
        ("name:ÉCOLE", [1, 2]),
        ("name:ecole", []),
        ("name:москва", [3]),
        ("группа", [3]),
        ("ΟΔΟΣ", [4]),
        ("tag:Übung", [1]),
        ("übung", [1]),
        ("name=école", []),
        ('"été_"', []),
        ("ŁÓDŹ", [5]),
    ],
)
def test_words_are_found_whatever_their_case_in_every_script(
    engine: Engine, text: str, seeds: list[int]
) -> None:
    make_run(engine, seed=1, name="École d'été", tags=["übung"])
    make_run(engine, seed=2, name="L'ÉCOLE")
    make_run(engine, seed=3, name="Москва", group="ГРУППА")
    make_run(engine, seed=4, notes="οδός, οδος")
    make_run(engine, seed=5, tags=["Łódź"])
    with reading(engine) as session:
        node = filters.parse(text)
        runs = repository.page(session, node, sort="seed", descending=False, limit=10, cursor=None)[0]
    assert [run.seed for run in runs] == seeds
