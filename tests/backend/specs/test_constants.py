"""Every default against literals copied from the papers by hand; see `backend.specs.constants`."""

from pathlib import Path
from typing import Any

import pytest

from backend.runs.catalogue.constants_page import differs, page
from backend.specs.algorithms import ALGORITHMS
from backend.specs.constants import ATARI_SOURCES, FIXED, Source
from backend.specs.environments.atari import AtariConfig
from backend.specs.run import parse_run_spec
from tests.backend.specs.printed import (
    ATARI,
    ATARI_DIFFERENT,
    ATARI_OURS,
    EXPECTED,
    Printed,
)

PAGE = Path(__file__).parents[3] / "docs" / "constants.md"


def expected(printed: Printed, ours: dict[str, Any], different: dict[str, Any]) -> dict[str, Any]:
    values = {name: value for name, (value, _, _) in printed.items() if value is not None}
    assert not set(values) & set(ours), "a setting is either printed or ours"
    assert set(different) <= set(values)
    assert all(values[name] != value for name, value in different.items())
    return values | ours | different


def check_sources(
    sources: dict[str, Source], printed: Printed, defaults: dict[str, Any], schema: dict[str, Any]
) -> None:
    """The declared sources are the literals, and every default that is not printed has a reason."""
    assert set(sources) == set(defaults)
    for name, source in sources.items():
        value, where, symbol = printed.get(name, (None, source.where, schema[name].get("symbol")))
        assert (source.printed(defaults[name]), source.where) == (value, where), name
        assert schema[name].get("symbol") == symbol, name
        if source.value is None or differs(defaults[name], source):
            assert source.note, name


def test_the_catalogue_holds_the_expected_algorithms() -> None:
    assert sorted(ALGORITHMS) == sorted(EXPECTED), "see docs/guides/algorithm.md"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_default_is_the_papers_or_a_declared_difference(algorithm: str) -> None:
    declared = ALGORITHMS[algorithm]
    known = EXPECTED[algorithm]
    defaults = declared.config().model_dump(mode="json")
    assert defaults == expected(known.printed, known.ours, known.different)
    schema = declared.config.model_json_schema()["properties"]
    check_sources(declared.sources, known.printed, defaults, schema)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_algorithm_declares_what_is_expected_of_it(algorithm: str) -> None:
    declared, known = ALGORITHMS[algorithm], EXPECTED[algorithm]
    assert declared.vector_defaults == known.vector
    assert declared.reproducibility == known.reproducibility
    assert declared.evaluation_protocol == known.protocol


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_continuous_defaults_are_the_papers_or_ours(algorithm: str) -> None:
    declared, known = ALGORITHMS[algorithm], EXPECTED[algorithm]
    assert declared.continuous_defaults == expected(known.continuous, known.continuous_ours, {})
    schema = declared.config.model_json_schema()["properties"]
    check_sources(declared.continuous_sources, known.continuous, declared.continuous_defaults, schema)
    if "continuous" in declared.actions:
        for environment in ("Hopper-v5", "Hopper-Pixels-v5", "Racing-Slow-Continuous-v0"):
            request = {"algorithm": algorithm, "environment": environment, "stop": {"agent_steps": 1}}
            config = parse_run_spec(request).config.model_dump()
            wanted = declared.continuous_defaults
            assert {name: config[name] for name in wanted} == wanted


def test_atari_defaults_are_the_papers_or_a_declared_difference() -> None:
    defaults = AtariConfig().model_dump(mode="json")
    assert defaults == expected(ATARI, ATARI_OURS, ATARI_DIFFERENT)
    check_sources(ATARI_SOURCES, ATARI, defaults, AtariConfig.model_json_schema()["properties"])


def test_initial_weights_are_among_the_constants_that_no_setting_changes() -> None:
    assert any(fixed.name == "initial weights" for fixed in FIXED)


def test_page_is_written_from_the_specs() -> None:
    written = page()
    assert PAGE.read_text("utf-8") == written, (
        "run .venv/bin/python -m backend.runs.catalogue.constants_page > docs/constants.md"
    )
    differences = sum(line.count("| ≠ |") for line in written.splitlines())
    assert differences == sum(len(known.different) for known in EXPECTED.values()) + len(ATARI_DIFFERENT)
