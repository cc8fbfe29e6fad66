import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from tests.support.runs import CARTPOLE
from tests.support.service import RunningService


@pytest.fixture
def lines() -> Iterator[list[dict[str, Any]]]:
    """What is logged, as structlog sees it, with the ids bound around it."""
    kept: list[dict[str, Any]] = []

    def keep(logger: object, method: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
        kept.append(dict(event))
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(processors=[structlog.contextvars.merge_contextvars, keep])
    yield kept
    structlog.configure(**before)


@pytest.mark.service
def test_a_request_is_logged_once_with_its_ids(
    sqlite_service: RunningService, lines: list[dict[str, Any]]
) -> None:
    run = sqlite_service.client.post("/api/v1/runs", json=CARTPOLE).json()
    sqlite_service.client.get(f"/api/v1/runs/{run['id']}/log", headers={"X-Request-ID": "r-7"})
    sqlite_service.client.get("/healthz")
    sqlite_service.stop()  # a line is written after the answer is sent
    requests = {line["path"]: line for line in lines if line["event"] == "request"}
    first = requests[f"/api/v1/runs/{run['id']}/log"]
    assert (first["request_id"], first["run_id"], first["status"]) == ("r-7", run["id"], 200)
    assert first["duration_ms"] > 0
    assert "run_id" not in requests["/healthz"]
    assert len([line for line in lines if line.get("request_id") == "r-7"]) == 1


PROGRAM = """
import logging, structlog
from backend.logging import configure
from backend.settings import Settings
configure(Settings(log_format="json", log_level="INFO"))
with structlog.contextvars.bound_contextvars(request_id="r", run_id="x"):
    structlog.get_logger("room").info("said", n=1)
    logging.getLogger("library").warning("heard %s", 2)
    logging.getLogger("library").debug("unheard")
    try:
        1 / 0
    except ZeroDivisionError:
        structlog.get_logger("room").exception("failed")
"""


def test_every_line_is_one_json_object_with_the_ids() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    said, heard, failed = map(json.loads, done.stderr.splitlines())
    assert (said["event"], said["n"], said["logger"], said["level"]) == ("said", 1, "room", "info")
    assert (heard["event"], heard["logger"], heard["level"]) == ("heard 2", "library", "warning")
    assert failed["exception"][0]["exc_type"] == "ZeroDivisionError"
    for line in (said, heard, failed):
        assert (line["request_id"], line["run_id"]) == ("r", "x")
        assert line["timestamp"].endswith("Z")
    assert done.stdout == ""
    assert logging.getLogger().handlers
