import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from backend.platform import logging as service_logging
from backend.platform.logging import MAX_LINES, MAX_WARNINGS, RateLimit
from tests.support.rows import CARTPOLE
from tests.support.service import RunningService, created_run


@pytest.fixture
def lines() -> Iterator[list[dict[str, Any]]]:
    """The events that structlog logs, with the ids bound in their context."""
    kept: list[dict[str, Any]] = []

    def keep(logger: object, method: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
        kept.append(dict(event))
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(processors=[structlog.contextvars.merge_contextvars, keep])
    yield kept
    structlog.configure(**before)


@pytest.mark.service
def test_request_is_logged_once_with_request_and_run_id(
    sqlite_service: RunningService, lines: list[dict[str, Any]]
) -> None:
    run = created_run(sqlite_service.client.post("/api/v1/runs", json=CARTPOLE))
    sqlite_service.client.get(f"/api/v1/runs/{run['id']}/log", headers={"X-Request-ID": "r-7"})
    sqlite_service.client.get("/healthz")
    sqlite_service.stop()  # the line is logged after the response is sent
    requests = {line["path"]: line for line in lines if line["event"] == "request"}
    first = requests[f"/api/v1/runs/{run['id']}/log"]
    assert (first["request_id"], first["run_id"], first["status"]) == ("r-7", run["id"], 200)
    assert first["duration_ms"] > 0
    assert "run_id" not in requests["/healthz"]
    assert len([line for line in lines if line.get("request_id") == "r-7"]) == 1


PROGRAM = """
import logging, structlog
from backend.platform.logging import configure
from backend.platform.settings import Settings
configure(Settings(log_format="json", log_level="INFO"))
with structlog.contextvars.bound_contextvars(request_id="r", run_id="x"):
    structlog.get_logger("backend").info("started", n=1)
    logging.getLogger("library").warning("retry %s", 2)
    logging.getLogger("library").debug("below the level")
    try:
        1 / 0
    except ZeroDivisionError:
        structlog.get_logger("backend").exception("failed")
"""


@pytest.mark.service
def test_json_log_writes_one_object_per_line_with_bound_ids() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    started, retry, failed = map(json.loads, done.stderr.splitlines())
    assert (started["event"], started["n"], started["logger"], started["level"]) == (
        "started",
        1,
        "backend",
        "info",
    )
    assert (retry["event"], retry["logger"], retry["level"]) == ("retry 2", "library", "warning")
    assert failed["exception"][0]["exc_type"] == "ZeroDivisionError"
    for line in (started, retry, failed):
        assert (line["request_id"], line["run_id"]) == ("r", "x")
        assert line["timestamp"].endswith("Z")
    assert done.stdout == ""
    assert logging.getLogger().handlers


def test_log_lines_of_one_kind_are_bounded_and_the_dropped_are_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = 100.0
    monkeypatch.setattr(service_logging, "monotonic", lambda: now)
    logger, limit = logging.getLogger("flooded"), RateLimit()
    caplog.set_level(logging.INFO)
    caplog.handler.addFilter(limit)
    try:
        for _ in range(1000):
            logger.warning("socket.accept() out of system resource")
        logger.warning("another kind")
        for n in range(MAX_LINES + 1000):
            logger.info("request %s", n)
        kinds = [record.msg for record in caplog.records]
        assert kinds.count("socket.accept() out of system resource") == MAX_WARNINGS
        assert kinds.count("another kind") == 1
        assert kinds.count("request %s") == MAX_LINES
        caplog.clear()
        now += service_logging.INTERVAL_S
        logger.warning("another kind")
        assert {record.getMessage() for record in caplog.records if record.name == "flooded"} == {
            f"{1000 - MAX_WARNINGS} more lines were dropped: socket.accept() out of system resource",
            "1000 more lines were dropped: request %s",
            "another kind",
        }
    finally:
        caplog.handler.removeFilter(limit)
