from typing import Any

import pytest
from sqlalchemy import Engine, select

from backend.db import Run
from backend.db.engine import reading, writing
from backend.db.json_values import json_number, json_text
from backend.runs.runs.schemas import RunOut
from tests.support.rows import make_run

PATH = ("config", "x")


@pytest.mark.parametrize(
    ("value", "number", "text"),
    [
        (0.001, 0.001, "0.001"),
        (2, 2.0, "2"),
        (-1.5e-7, -1.5e-7, None),
        ("3", None, "3"),
        ("auto", None, "auto"),
        (True, None, "true"),
        (None, None, None),
    ],
)
def test_values_of_a_setting_are_the_same_on_both_databases(
    engine: Engine, value: Any, number: float | None, text: str | None
) -> None:
    run = make_run(engine)
    with writing(engine) as session:
        session.get_one(Run, run.id).spec = run.spec | {"config": {"x": value}}
    with reading(engine) as session:
        assert session.scalar(select(json_number(Run.spec, PATH))) == number
        if text is not None or value is None:  # each database has its own text of small numbers
            assert session.scalar(select(json_text(Run.spec, PATH))) == text
        assert session.scalar(select(json_number(Run.spec, ("config", "y")))) is None


@pytest.mark.service
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_postgresql_reads_each_spec_once_and_without_parsing_it(engine: Engine) -> None:
    statement = select(json_number(Run.spec, PATH))
    assert str(statement.compile(engine)).count("runs.spec") == 1
    make_run(engine)
    with reading(engine) as session:
        assert session.connection().exec_driver_sql("SELECT pg_typeof(spec) FROM runs").scalar() == "jsonb"


def test_fields_of_a_spec_keep_their_order(engine: Engine) -> None:
    run = make_run(engine, algorithm="a3c", environment="ALE/Pong-v5", config={}, environment_config={})
    with reading(engine) as session:
        stored = session.get_one(Run, run.id)
        spec = RunOut.of(stored).spec
    for section in (None, "config", "environment_config", "stop"):
        shown, declared = (spec, run.spec) if section is None else (spec[section], run.spec[section])
        assert list(shown) == list(declared), section
