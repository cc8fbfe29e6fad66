from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine

from backend.db.engine import reading, writing
from backend.runs import filters, repository
from backend.runs.filters import All, BadFilter, Either, Not, Term, Word
from backend.specs.states import RunState
from tests.support.runs import make_run

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
    ],
)
def test_text_to_tree(text: str, tree: filters.Node) -> None:
    assert filters.parse(text) == tree


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("colour:red", "no field 'colour'"),
        ("score:high", "needs a number"),
        ("score>nan", "needs a number"),
        ("score>1e999", "needs a number"),
        ("name>3", "cannot be compared"),
        ("state:flying", "no state"),
        ("archived:maybe", "true or false"),
        ("created_at>soon", "needs a time"),
        ("(tag:a", "parenthesis is missing"),
        ("tag:a)", "parenthesis too many"),
        ("tag:a or", "missing at the end"),
        ("or tag:a", "missing before 'or'"),
        ("not", "missing at the end"),
        ('name:"open', "quote"),
        ('"open', "quote"),
        ("(" * 50 + "x" + ")" * 50, "deeply"),
        ("not " * 50 + "x", "deeply"),
        ("a " * 300, "more than"),
        ("a\0", "stored"),
        ("\ud800", "stored"),
    ],
)
def test_what_cannot_be_read_says_why(text: str, reason: str) -> None:
    with pytest.raises(BadFilter, match=reason):
        filters.parse(text)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
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
            found = repository.get(session, run.id, for_update=True)
            assert found is not None
            found.score = score
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
def test_tree_to_runs(some_runs: Engine, text: str, seeds: list[int]) -> None:
    with reading(some_runs) as session:
        rows, _, total = repository.page(
            session, filters.parse(text), sort="seed", descending=False, limit=10, cursor=None
        )
    assert [row.seed for row in rows] == seeds
    assert total == len(seeds)
