"""The examples for Prometheus and Grafana: they name what `/metrics` has, and their expressions are right."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from backend.platform.principals import Role
from backend.specs.states import RunState
from tests.support import servers
from tests.support.rows import make_run
from tests.support.service import RunningService
from tests.support.waiting import PATIENCE_S, until

EXAMPLES = Path(__file__).parents[2] / "examples" / "deploy"
BOARD: dict[str, Any] = json.loads((EXAMPLES / "grafana.json").read_text())
RULES: list[dict[str, str]] = yaml.safe_load((EXAMPLES / "alerts.yml").read_text())["groups"][0]["rules"]
NAME = re.compile(r"\bcallboard_[a-z_]+")
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}

pytestmark = [pytest.mark.service, pytest.mark.long]


def _panel_expressions() -> Iterator[str]:
    for panel in BOARD["panels"]:
        for target in panel["targets"]:
            yield target["expr"]


def _expressions() -> list[str]:
    """All of the dashboard and the alerts, with the variables of the dashboard filled in."""
    filled = [
        expression.replace("$__rate_interval", "1m").replace("$instance", ".*")
        for expression in _panel_expressions()
    ]
    return filled + [rule["expr"] for rule in RULES]


def test_dashboard_and_alerts_name_metrics_and_labels_that_there_are(sqlite_service: RunningService) -> None:
    sqlite_service.client.get("/api/v1/runs")
    make_run(sqlite_service.engine)
    families = list(text_string_to_metric_families(sqlite_service.client.get("/metrics").text))
    known = {family.name + suffix for family in families for suffix in SUFFIXES.get(family.type, ())}
    named = {name for expression in _expressions() for name in NAME.findall(expression)}
    assert named - known == set()
    assert "callboard_build_info" in json.dumps(BOARD["templating"])
    used = {name.removesuffix("_total").removesuffix("_bucket") for name in named}
    ours = {family.name for family in families if re.fullmatch("callboard_.*(?<!_created)", family.name)}
    assert ours - used == set(), "the dashboard shows every metric"


def test_dashboard_names_its_data_source_by_a_variable() -> None:
    source = {"type": "prometheus", "uid": "${datasource}"}
    for panel in BOARD["panels"]:
        assert panel["datasource"] == source
        assert all(target["datasource"] == source for target in panel["targets"])
        assert all('instance=~"$instance"' in target["expr"] for target in panel["targets"])
    [chosen, instances] = BOARD["templating"]["list"]
    assert (chosen["name"], chosen["type"], chosen["query"]) == ("datasource", "datasource", "prometheus")
    assert (instances["name"], instances["datasource"]) == ("instance", source)
    places = [panel["gridPos"] for panel in BOARD["panels"]]
    cells = [
        (x, y)
        for place in places
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells)), "panels overlap"
    assert max(x for x, _ in cells) < 24


def test_promtool_accepts_configuration_and_rules_and_their_tests_pass(tmp_path: Path) -> None:
    promtool = servers.required("promtool")
    for name in ("prometheus.yml", "alerts.yml", "alerts.test.yml"):
        shutil.copy(EXAMPLES / name, tmp_path)
    token = tmp_path / "token"
    token.write_text("t")
    path = tmp_path / "prometheus.yml"
    path.write_text(path.read_text().replace("/etc/prometheus/callboard-token", str(token)))
    for command in (
        ["check", "config", "prometheus.yml"],
        ["check", "rules", "alerts.yml"],
        ["test", "rules", "alerts.test.yml"],
    ):
        done = subprocess.run(
            [promtool, *command],
            cwd=tmp_path,
            env=servers.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_scrapes_the_service_and_evaluates_every_expression(
    sqlite_service: RunningService, tmp_path: Path
) -> None:
    program = servers.required("prometheus")
    make_run(sqlite_service.engine, RunState.RUNNING)
    make_run(sqlite_service.engine)
    with sqlite_service.client_as(Role.VIEWER) as script:
        (tmp_path / "token").write_text(script.headers["Authorization"].removeprefix("Bearer "))
    shutil.copy(EXAMPLES / "alerts.yml", tmp_path)
    config = (EXAMPLES / "prometheus.yml").read_text()
    for old, new in {
        "scheme: https": "scheme: http",
        "/etc/prometheus/callboard-token": str(tmp_path / "token"),
        "callboard.example:443": sqlite_service.url.removeprefix("http://"),
    }.items():
        assert old in config, old
        config = config.replace(old, new)
    (tmp_path / "prometheus.yml").write_text("global:\n  scrape_interval: 1s\n" + config)
    port = servers.free_port()
    command = [program, "--config.file=prometheus.yml", f"--web.listen-address=127.0.0.1:{port}"]
    command += [f"--storage.tsdb.path={tmp_path / 'data'}"]
    with (
        servers.running(command, tmp_path / "prometheus.log", cwd=tmp_path),
        httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1", timeout=PATIENCE_S) as client,
    ):

        def values(expression: str) -> list[Any]:
            answer = client.get("/query", params={"query": expression})
            assert answer.is_success, (expression, answer.text)
            result: list[Any] = answer.json()["data"]["result"]
            return result

        until(lambda: _up(client), detail=(tmp_path / "prometheus.log").read_text)
        until(lambda: values("rate(callboard_http_requests_total[1m])"), every_s=0.2)
        assert values('callboard_runs{state="queued"}')[0]["value"][1] == "1"
        for expression in _expressions():
            values(expression)
        assert values('sum(callboard_runs{state="running",instance=~".*"})')[0]["value"][1] == "1"
        loaded = client.get("/rules").json()["data"]["groups"][0]["rules"]
        assert [rule["name"] for rule in loaded] == [rule["alert"] for rule in RULES]


def _up(client: httpx.Client) -> bool:
    try:
        answer = client.get("/query", params={"query": 'up{job="callboard"} == 1'})
        return answer.is_success and bool(answer.json()["data"]["result"])
    except httpx.TransportError:
        return False
