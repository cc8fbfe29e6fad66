import json
from typing import Annotated, Any, Literal

import pytest
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from backend.experiments.specs.sweep import SweepSpec
from backend.specs.problems import explain_in, problems_of, quoted, similar_ids, unknown_fields


class _Example(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(min_length=1, max_length=5)] = "a"
    notes: Annotated[str, Field(max_length=20_000)] = ""
    password: Annotated[str, Field(min_length=10)] = "0123456789"
    items: Annotated[list[int], Field(min_length=1, max_length=1)] = [1]
    several: Annotated[list[int], Field(min_length=2)] = [1, 2]
    sort: Annotated[str, Field(pattern=r"^-?(name|score)$")] = "name"
    colour: Literal["red", "green"] = "red"
    steps: Annotated[int, Field(le=10**12)] = 0
    share: Annotated[float, Field(ge=0.00001)] = 1.0
    time: Annotated[AwareDatetime | None, Field(strict=False)] = None


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("name", "", "must not be empty"),
        ("name", "abcdef", "must have at most 5 characters, has 6"),
        ("notes", "a" * 20_001, "must have at most 20,000 characters, has 20,001"),
        ("password", "", 'must have at least 10 characters, got ""'),
        ("items", [], "must not be empty"),
        ("items", [1, 2], "must have at most 1 item, has 2"),
        ("several", [], "must have at least 2 items"),
        ("sort", "a", 'must be one of name, score; put - before it for descending order, got "a"'),
        ("other", 1, "no such field"),
        ("colour", "grün", 'must be red or green, got "grün"'),
        ("steps", 10**13, "must be at most 1,000,000,000,000, got 10000000000000"),
        ("share", 0.0, "must be at least 0.00001, got 0.0"),
        ("time", "soon", 'must be a date and time, such as 2026-01-31T12:00:00Z, got "soon"'),
        ("time", [], "must be a date and time, such as 2026-01-31T12:00:00Z"),
        (
            "time",
            "2026-01-31T12:00:00",
            'must state its time zone, such as 2026-01-31T12:00:00Z, got "2026-01-31T12:00:00"',
        ),
    ],
)
def test_message_states_what_would_be_right(field: str, value: Any, message: str) -> None:
    with pytest.raises(ValidationError) as raised:
        _Example.model_validate({field: value})
    assert [(problem.field, problem.message) for problem in problems_of(raised.value)] == [(field, message)]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("größe", '"größe"'),
        ('a"b\n\x9f\u202e\ud800', r'"a\"b\n\u009f\u202e\ud800"'),
        ("x" * 80, f'"{"x" * 80}"'),
        ("x" * 81, f'"{"x" * 80}…"'),
        (["größe", 1], '["größe", 1]'),
        ([1] * 30, f"{json.dumps([1] * 30)[:80]}…"),
    ],
)
def test_quoted_value_is_one_line_and_ends_where_it_was_cut(value: Any, text: str) -> None:
    assert quoted(value) == text


def test_only_the_first_unknown_fields_are_compared_with_those_that_there_are() -> None:
    problems = unknown_fields([f"config.gama{n}" for n in range(12)], ["gamma"])
    assert [problem.field for problem in problems] == [f"config.gama{n}" for n in range(12)]
    assert {problem.message for problem in problems[:10]} == {"no such field; did you mean gamma?"}
    assert {problem.message for problem in problems[10:]} == {"no such field"}


def test_very_long_name_is_compared_with_none() -> None:
    known = "g" * 64
    similar, long = unknown_fields([known[1:], known + "g"], [known])
    assert similar.message == f"no such field; did you mean {known}?"
    assert long.message == f"no such field; use {known}"


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ({"space": {"config.gamma": {"hig": 1}}}, "space.config.gamma.hig", "did you mean high?"),
        ({"space": {"config.n": {"hig": 1}}}, "space.config.n.hig", "did you mean high?"),
        ({"budget.runs": 3}, "budget.runs", 'send {"budget": {"runs": …}}'),
        ({"budget": {"run": 3}}, "budget.run", "did you mean runs?"),
        ({"budgets": {}}, "budgets", "did you mean budget?"),
    ],
)
def test_unknown_field_at_any_depth_is_answered_with_what_is_meant(
    body: dict[str, Any], field: str, message: str
) -> None:
    with pytest.raises(ValidationError) as raised:
        SweepSpec.model_validate({"name": "a", "run": {}} | body)
    message_of_field = {
        problem.field: problem.message for problem in explain_in(problems_of(raised.value), SweepSpec)
    }
    assert message_of_field[field] == f"no such field; {message}"


def test_similar_ids_contain_the_name_or_are_like_it() -> None:
    known = ["ALE/Pong-v5", "ALE/Breakout-v5", "CartPole-v1"]
    assert similar_ids("pong", known) == ["ALE/Pong-v5"]
    assert similar_ids("CartPool-v1", known) == ["CartPole-v1"]
    assert similar_ids("", known) == similar_ids("zzz", known) == []
