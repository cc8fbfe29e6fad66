import pytest
from pydantic import BaseModel

from backend.runs.forks.schemas import ForkRequest
from backend.runs.runs.external_spec import ExternalFields
from backend.runs.runs.schemas import CommandFields, RunChanges, RunFields
from backend.specs.run import FILLED_IN, RunSpec
from backend.specs.run_fields import RunOptions

TEXTS = ("title", "description", "default")
FIELDS = {*RunOptions.model_fields, "seed"}


def _bounds(model: type[BaseModel], field: str) -> dict[str, object]:
    """What the schema of a field allows beside null."""
    schema = model.model_json_schema()["properties"][field]
    [allowed] = [branch for branch in schema.get("anyOf", [schema]) if branch.get("type") != "null"]
    return {keyword: value for keyword, value in allowed.items() if keyword not in TEXTS}


PLACED = {"device", "queue", "host"}


@pytest.mark.parametrize("model", [RunFields, CommandFields, RunChanges, ForkRequest, ExternalFields])
def test_requests_have_the_bounds_of_the_spec(model: type[BaseModel]) -> None:
    common = FIELDS & set(model.model_fields)
    assert len(common) >= 5
    if model is ExternalFields:
        common.remove("seed")  # that of another program may be larger; it has tests of its own
    for field in common:
        bounds = _bounds(model, field)
        # A given name is not empty; without one, a run gets its default name.
        if field == "name" and model in (RunChanges, ForkRequest):
            assert bounds.pop("minLength") == 1
        assert bounds == _bounds(RunSpec, field), field


def test_request_to_create_a_run_has_every_field_of_a_spec() -> None:
    assert set(RunFields.model_fields) - set(RunSpec.model_fields) == {"origin", "seeds", "grid"}
    assert set(RunSpec.model_fields) - set(RunFields.model_fields) == FILLED_IN


@pytest.mark.parametrize(
    ("model", "without"),
    [
        (RunFields, set()),
        # A command's script knows what it trains, and its host where.
        (CommandFields, {"annealing_agent_steps", "device"}),
        # A fork keeps the schedule of its parent; `resume` chooses it.
        (ForkRequest, {"annealing_agent_steps"}),
        # What a worker has read when it claims the run does not change.
        (RunChanges, {"annealing_agent_steps", "seed", *PLACED}),
        # No worker trains an external run.
        (ExternalFields, {"annealing_agent_steps", "priority", *PLACED}),
    ],
)
def test_requests_have_every_field_of_a_run_except_the_listed(
    model: type[BaseModel], without: set[str]
) -> None:
    assert FIELDS - set(model.model_fields) == without
