import json
from pathlib import Path

import psutil
import pytest
from sqlalchemy import Engine, make_url, select
from typer.testing import CliRunner

from backend.analysis.metrics import repository as metrics
from backend.db import Run
from backend.db.engine import reading
from benchmarks import __main__ as bench
from benchmarks import ingest as bench_ingest
from benchmarks import metrics as series
from benchmarks import runs as lists
from benchmarks.__main__ import app
from callboard_cli import servers
from tests.support.databases import short_folder, start_patiently
from tests.support.rows import make_run
from tests.support.waiting import until
from tests.workers.support import running

pytestmark = [pytest.mark.service, pytest.mark.long]


@pytest.fixture(autouse=True)
def small_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_ingest, "N_POINTS", 20_000)
    monkeypatch.setattr(series, "N_POINTS", 5_000)
    monkeypatch.setattr(lists, "N_RUNS", 100)
    start_patiently()


def _points_by_metric(engine: Engine) -> dict[str, list[int]]:
    by_metric: dict[str, list[int]] = {}
    with reading(engine) as session:
        ids = session.scalars(select(Run.id)).all()
        for row in metrics.list_series(session, ids):
            by_metric.setdefault(row.metric, []).append(row.n_points)
    return by_metric


def test_bench_service_measures_given_database_and_stores_its_rows(engine: Engine, database_url: str) -> None:
    done = CliRunner().invoke(app, ["service", "--database-url", database_url, "--json"])
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert answer["goals"] == bench.GOALS
    (measured,) = answer["databases"].items()
    assert measured[0] == engine.dialect.name
    assert set(measured[1]) == set(bench.ROWS)
    assert all(value > 0 for value in measured[1].values())
    stored = _points_by_metric(engine)
    # Three ingests of 20,000 points in ten series, and the twenty runs of the charts.
    assert [stored[f"recorded/{at}"] for at in range(10)] == [[2_000] * 3] * 10
    assert stored[series.METRIC] == [5_000] * 20


def test_bench_service_rejects_database_with_runs(engine: Engine, database_url: str) -> None:
    run = make_run(engine)
    done = CliRunner().invoke(app, ["service", "--database-url", database_url])
    assert done.exit_code == 2
    assert "use an empty one" in done.stderr
    with reading(engine) as session:
        assert session.scalars(select(Run.id)).all() == [run.id]


@pytest.mark.parametrize(
    "url", ["nonsense", "postgresql+psycopg://127.0.0.1:1/none", "sqlite:////proc/no.db"]
)
def test_bench_service_with_unreachable_database_prints_one_line(url: str) -> None:
    done = CliRunner().invoke(app, ["service", "--database-url", url])
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].startswith("callboard: --database-url: ")


def test_bench_service_without_url_compares_private_databases_with_goals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    done = CliRunner().invoke(app, ["service"])
    assert done.exit_code == 0, done.output
    header = next(line for line in done.stdout.splitlines() if "goal" in line)
    assert "sqlite" in header
    assert "postgresql" in header
    assert "≥ 100,000" in done.stdout
    assert "≤ 150" in done.stdout


def test_private_servers_leave_no_process_or_folder() -> None:
    before = {child.pid for child in psutil.Process().children()}
    with short_folder() as folder, servers.temporary_redis(folder / "redis.sock"):
        [redis] = [child for child in psutil.Process().children() if child.pid not in before]
    assert not redis.is_running()
    with servers.temporary_postgres() as url:
        data = make_url(url).query["host"]
        pid = int((Path(str(data)) / "postmaster.pid").read_text().split()[0])
        assert running(pid)
    until(lambda: not running(pid))
    assert not Path(str(data)).exists()
