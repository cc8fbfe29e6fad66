import json
import subprocess
import sys
from pathlib import Path

import pytest
from openapi_spec_validator import validate

from backend.app import create_app
from backend.settings import Settings


@pytest.fixture
def document(tmp_path: Path) -> dict[str, dict[str, dict[str, object]]]:
    described: dict[str, dict[str, dict[str, object]]] = create_app(Settings(home=tmp_path)).openapi()
    return described


def test_it_is_valid(document: dict[str, object]) -> None:
    validate(document)


def test_every_error_is_a_problem_document(document: dict[str, dict[str, dict[str, object]]]) -> None:
    for path in document["paths"].values():
        for operation in path.values():
            answers = operation["responses"]  # type: ignore[index]
            assert "422" not in answers
            assert "application/problem+json" in answers["4XX"]["content"]
    assert "ProblemDocument" in document["components"]["schemas"]
    assert "HTTPValidationError" not in document["components"]["schemas"]


def test_operation_ids_are_unique(document: dict[str, dict[str, dict[str, dict[str, str]]]]) -> None:
    ids = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(ids) == len(set(ids))


def test_a_run_request_is_described_field_by_field(
    document: dict[str, dict[str, dict[str, dict[str, object]]]],
) -> None:
    fields = document["components"]["schemas"]["RunFields"]
    assert {"algorithm", "environment", "stop", "config", "seeds"} <= set(fields["properties"])
    assert fields["required"] == ["algorithm", "environment", "stop"]


def test_it_can_be_printed_without_a_server(document: dict[str, object]) -> None:
    printed = subprocess.run([sys.executable, "-m", "backend.print_openapi"], capture_output=True, check=True)
    assert json.loads(printed.stdout) == document
