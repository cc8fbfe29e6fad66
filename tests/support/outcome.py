"""A pytest plug-in: `--outcome=FILE` records as JSON which tests were selected, finished and failed.

    {"selected": [id, ...], "finished": [id, ...], "failed": {id: traceback}, "broken": [reason, ...],
     "crashes": [reason, ...]}

`selected` and `finished` are in pytest's order; a test has finished once its teardown is over. `broken` names
errors of collection, `crashes` the test processes that crashed. With xdist the process that distributes the
tests writes it.
"""

import json
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--outcome", type=Path, help="record the outcome of each test in this file")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--outcome")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Outcome(path, config))


class Outcome:
    """Collects reports and writes them when the session ends.

    It names each failure immediately: pytest does so at the end, which an interrupted run does not reach.
    """

    def __init__(self, path: Path, config: pytest.Config) -> None:
        self._path = path
        self._config = config
        self._selected: dict[str, None] = {}
        self._finished: dict[str, None] = {}
        self._failed: dict[str, str] = {}
        self._broken: list[str] = []
        self._crashes: list[str] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._selected.update(dict.fromkeys(item.nodeid for item in session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        self._selected.update(dict.fromkeys(ids))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        if error:
            process = node.gateway._io.popen  # noqa: SLF001 - execnet has no public name for it
            self._crashes.append(f"a test process ended with status {process.wait(timeout=60)}: {error}")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._broken.append(f"{report.nodeid} could not be collected")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            if (terminal := self._config.pluginmanager.get_plugin("terminalreporter")) is not None:
                terminal.write_line(f"\nfailed: {report.nodeid}")
            before = self._failed.get(report.nodeid)
            self._failed[report.nodeid] = "\n".join(filter(None, [before, report.longreprtext]))
        if report.when == "teardown":
            self._finished[report.nodeid] = None

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        recorded = {
            "selected": list(self._selected),
            "finished": list(self._finished),
            "failed": self._failed,
            "broken": self._broken,
            "crashes": self._crashes,
        }
        self._path.write_text(json.dumps(recorded))
