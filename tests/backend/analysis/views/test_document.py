from typing import Annotated, Any

import pytest
from pydantic import StringConstraints, TypeAdapter, ValidationError

from backend.analysis.views.document import MAX_DOCUMENT_BYTES, ViewDocument, read
from backend.specs.fields import LABEL

DOCUMENT: dict[str, Any] = {
    "filter": "tag:baseline",
    "grouping": "seed",
    "columns": [{"field": "name", "width_px": 220}, {"field": "config.learning_rate"}],
    "colours": {"0f3c5a7e0f3c5a7e": 3},
    "panels": [
        {"kind": "lines", "metrics": ["rollout/episode_return", "loss/value"], "log": True, "columns": 6},
        {"kind": "scatter", "setting": "config.learning_rate"},
        {"kind": "lines", "formulas": ["ema(a, 0.9) / b"], "x": "c", "title": "Ratio", "tab": "Losses"},
        {"kind": "heatmap", "settings": ["config.learning_rate", "config.n_e"]},
        {"kind": "parallel", "score": "best_return"},
        {"kind": "text", "text": "**Note**", "height_px": 200},
        *({"kind": kind} for kind in ("bars", "strips", "importance", "diff")),
    ],
    "curves": {"x": "wall_time_s", "zoom": {"start": 0.0, "end": 60.0}},
    "verdict": {"threshold": 475.0},
}


def test_document_is_stored_without_defaults_and_read_as_it_was() -> None:
    document = ViewDocument.model_validate(DOCUMENT)
    stored = document.stored()
    assert stored.keys() == DOCUMENT.keys() | {"version"}
    assert stored["panels"][1] == {"kind": "scatter", "setting": "config.learning_rate"}
    assert stored["panels"][2:] == DOCUMENT["panels"][2:]
    assert read(stored) == (document, True)


@pytest.mark.parametrize(
    "stored",
    [
        DOCUMENT | {"version": 2, "sparkles": {"on": True}, "list": "round"},
        DOCUMENT | {"version": 2, "panels": [{"kind": "hologram"}]},
        {name: value for name, value in DOCUMENT.items() if name != "version"},
        {},
    ],
)
def test_document_of_another_version_is_read_as_far_as_it_can_be(stored: dict[str, Any]) -> None:
    document, is_whole = read(stored)
    assert not is_whole
    assert document.filter == stored.get("filter", "")
    assert document.list == "alone"


def test_document_has_a_limited_size() -> None:
    setting = "s" * 250
    columns = [{"field": setting}] * 100
    panels = [{"kind": "lines", "metrics": [setting] * 10}] * 100
    assert ViewDocument.model_validate({"columns": columns, "panels": panels[:10]})
    with pytest.raises(ValidationError, match=f"the maximum is {MAX_DOCUMENT_BYTES:,}"):
        ViewDocument.model_validate({"columns": columns, "panels": panels})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("version", 2),
        ("filter", "x" * 2_001),
        ("runs", ["none"]),
        ("panels", [{"kind": "lines", "metrics": []}]),
        ("panels", [{"kind": "lines", "formulas": ["a" * 201]}]),
        ("panels", [{"kind": "text", "text": "x" * 10_001}]),
        ("panels", [{"kind": "heatmap", "settings": ["a", "b", "c"]}]),
        ("colours", {"0f": 100}),
        ("unknown", 1),
    ],
)
def test_document_of_a_request_has_valid_fields_only(field: str, value: Any) -> None:
    with pytest.raises(ValidationError):
        ViewDocument.model_validate({field: value})


@pytest.mark.parametrize("name", ["a", "a b", "Ü", "x" * 100, "🚀 rates", "/Users/ada/ppo", "%2e"])
def test_label_may_have_any_letters(name: str) -> None:
    assert _is_label(name)


@pytest.mark.parametrize(
    "name", ["", " a", "a ", ".", "..", ".a", 'a"b', "a\\b", "a\nb", "a\u2028b", "x" * 101]
)
def test_label_is_what_an_address_and_a_filter_can_hold(name: str) -> None:
    assert not _is_label(name)


def _is_label(name: str) -> bool:
    label: TypeAdapter[str] = TypeAdapter(Annotated[str, StringConstraints(pattern=LABEL)])
    try:
        label.validate_python(name)
    except ValidationError:
        return False
    return True
