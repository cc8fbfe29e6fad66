from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from backend.specs.problems import problems_of, unknown_fields


class _Example(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(min_length=1, max_length=5)] = "a"
    password: Annotated[str, Field(min_length=10)] = "0123456789"
    items: Annotated[list[int], Field(min_length=1, max_length=1)] = [1]
    several: Annotated[list[int], Field(min_length=2)] = [1, 2]
    sort: Annotated[str, Field(pattern=r"^-?(name|score)$")] = "name"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("name", "", "must not be empty"),
        ("name", "abcdef", "must have at most 5 characters, has 6"),
        ("password", "", 'must have at least 10 characters, got ""'),
        ("items", [], "must not be empty"),
        ("items", [1, 2], "must have at most 1 item, has 2"),
        ("several", [], "must have at least 2 items"),
        ("sort", "a", 'must be one of name, score; put - before it for descending order, got "a"'),
        ("other", 1, "no such field"),
    ],
)
def test_message_states_what_would_be_right(field: str, value: Any, message: str) -> None:
    with pytest.raises(ValidationError) as raised:
        _Example.model_validate({field: value})
    assert [(each.field, each.message) for each in problems_of(raised.value)] == [(field, message)]


def test_only_the_first_unknown_fields_are_compared_with_those_that_there_are() -> None:
    problems = unknown_fields([f"config.gama{n}" for n in range(12)], ["gamma"])
    assert [each.field for each in problems] == [f"config.gama{n}" for n in range(12)]
    assert {each.message for each in problems[:10]} == {"no such field; did you mean gamma?"}
    assert {each.message for each in problems[10:]} == {"no such field"}


def test_very_long_name_is_compared_with_none() -> None:
    known = "g" * 64
    similar, long = unknown_fields([known[1:], known + "g"], [known])
    assert similar.message == f"no such field; did you mean {known}?"
    assert long.message == f"no such field; use {known}"
