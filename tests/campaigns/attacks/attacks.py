"""The attacks, in their full sizes. Short forms of them are tests of the parts they concern."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from time import sleep, time
from typing import Any

import numpy as np
import psutil
from sqlalchemy import insert

from backend.analysis.metrics import repository as metrics
from backend.analysis.metrics.service import MAX_BUCKETS
from backend.coordination import claims
from backend.db import Run
from backend.db.base import new_id
from backend.db.engine import writing
from backend.runs.runs import service as runs
from backend.specs.events import LogEvent, PointsEvent, StartedEvent
from backend.specs.states import RunState
from tests.campaigns.attacks.target import MAX_WORKER_MIB, Report, Target
from tests.support.installation import environment
from tests.support.rows import CARTPOLE, add_host, make_run
from tests.support.sockets import connected, get_request, status_of
from workers.engine.training.event_log import EventLog

N_POINTS = 1_200_000
N_RUNS = 10_000
N_METRICS = 1_000
HELD_S = 40.0
"""How long a client keeps its connections open without reading or writing."""
SHORTER = 4
"""By how much the short form divides times and points."""


def stalled_exports(target: Target, report: Report) -> None:
    """56 exports of 1.2 million points that are not read."""
    _unread(target, report, f"/api/v1/runs/{_run_with_points(target)}/export?format=csv", 56)


def unread_charts(target: Target, report: Report) -> None:
    """40 charts of as many points as one may ask for, which are not read."""
    n_metrics = MAX_BUCKETS // 10_000
    run_id = _run_with_points(target, n_metrics=n_metrics, n_points=10_000)
    asked = "&".join(f"metric=flood/{n:04d}" for n in range(n_metrics))
    _unread(target, report, f"/api/v1/series?run={run_id}&points=10000&{asked}", 40)


def wrong_logins(target: Target, report: Report) -> None:
    """400 wrong logins, 120 at the same time, each with another name."""

    def log_in(n: int) -> str:
        body = {"name": f"flood{n}", "password": "a wrong password"}
        return target.status_of("POST", "/api/v1/auth/login", json=body)

    for first in range(0, 400, 120):
        n = min(120, 400 - first)
        report.answers += target.at_once(n, lambda n, first=first: log_in(first + n))  # type: ignore[misc]


def forged_addresses(target: Target, report: Report) -> None:
    """60 guesses of one password at the same time, each with an address of its own."""

    def guess(n: int) -> str:
        return target.status_of(
            "POST",
            "/api/v1/auth/login",
            headers={"X-Forwarded-For": f"10.0.0.{n}"},
            json={"name": "owner", "password": f"a guess {n}"},
        )

    report.answers += target.at_once(60, guess)
    tried = report.answers["401"]
    if tried > 5:
        report.problems.append(f"{tried} guesses were tried")


def locked_database(target: Target, report: Report) -> None:
    """Another process holds SQLite's write lock for 71 s; 130 requests write."""
    report.writes_must_wait = True
    other = sqlite3.connect(target.home / "callboard.sqlite3", isolation_level=None, timeout=60)
    other.execute("BEGIN IMMEDIATE")
    report.answers += target.at_once(130, lambda _: target.status_of("POST", "/api/v1/runs", json=CARTPOLE))
    for _ in range(71 // _divisor(target)):
        if target.status_of("GET", "/api/v1/runs", 10.0) != "200":
            report.problems.append("a list of runs was not answered while the database was locked")
        sleep(1)
    other.execute("ROLLBACK")
    other.close()


def half_open_connections(target: Target, report: Report) -> None:
    """1,100 connections with half a request, while the web process may open 1,024 descriptors."""
    web = target.process("web")
    before = web.rlimit(psutil.RLIMIT_NOFILE)
    web.rlimit(psutil.RLIMIT_NOFILE, (1024, before[1]))
    half = b"GET /api/v1/runs HTTP/1.1\r\nHost: "
    for _ in range(1 if target.short else 3):
        with connected(target.url, half, n=1100):
            report.answers[target.status_of("GET", "/api/v1/runs", 20.0)] += 1
            sleep(20 / _divisor(target))
            report.answers[target.status_of("GET", "/api/v1/runs", 20.0)] += 1
    web.rlimit(psutil.RLIMIT_NOFILE, before)
    report.details = f"descriptors afterwards: {web.num_fds()}"


def event_streams(target: Target, report: Report) -> None:
    """500 event streams of one user, of which most are refused."""
    request = get_request(target.url, "/api/v1/events", target.session_headers)
    with connected(target.url, request, n=500) as clients:
        for client in clients:
            report.answers[str(status_of(client))] += 1


def costly_filters(target: Target, report: Report) -> None:
    """40 filters of 100 words and 40 of the maximum, over 10,000 runs."""
    many_runs(target)
    for n in (100, 20):
        text = " or ".join(f"zzq{i}" for i in range(n))
        report.answers += target.at_once(
            40,
            partial(_list_runs, target, {"filter": text}),
        )


def many_queued_runs(target: Target, report: Report) -> None:
    """10,000 queued runs: pages that show them, and the worker that looks for work among them."""
    many_runs(target)
    for path in ("/api/v1/runs?limit=1000", "/api/v1/hosts", "/metrics", "/api/v1/runs/fields"):
        report.answers[target.status_of("GET", path)] += 1
    sleep(10)


def many_metrics(target: Target, report: Report) -> None:
    """A run of 1,000 metrics: its series, one chart of 100 of them, and its exports."""
    run_id = _run_with_points(target, n_metrics=N_METRICS, n_points=1000)
    asked = "&".join(f"metric=flood/{n:04d}" for n in range(100))
    for path in (
        f"/api/v1/runs/{run_id}/series",
        f"/api/v1/series?run={run_id}&{asked}",
        f"/api/v1/runs/{run_id}/export?format=tensorboard",
    ):
        report.answers[target.status_of("GET", path)] += 1


RECORDER = """
import sys
from backend.platform.settings import Settings
from backend.coordination.context import Context
from workers.recorder import Recorder
recorder = Recorder(Context.from_settings(Settings()), sys.argv[1], 1)
while recorder.record():
    pass
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM:")).split()[1])
"""


def flooding_engine(target: Target, report: Report) -> None:
    """A log of 1,000 metrics, a million points, 200,000 lines and one line of 100 MB, recorded together."""
    add_host(target.engine, "flooded", queues=["gpu"])
    run = make_run(target.engine, host="flooded")
    with writing(target.engine) as session:
        claim = claims.claim(session, "flooded", queues=[], free_memory_bytes=2**60, lease_s=3600.0)
        assert claim is not None
        assert claim.run_id == run.id
    log = EventLog(target.home / "runs" / run.id / "attempts" / "1" / "events.log")
    log.add(StartedEvent(time=time(), device="cpu", pid=1), LogEvent(time=time(), message="x" * 10**8))
    for first in range(0, 1000, 10):
        at = list(range(first, first + 10))
        for m in range(N_METRICS):
            points = {"agent_steps": at, "frames": at, "episodes": at}
            log.add(PointsEvent(metric=f"flood/{m}", **points, wall_time_s=[1.0] * 10, value=[0.5] * 10))
        log.add(*(LogEvent(time=time(), message=f"line {n} " * 5) for n in range(2000)))
        log.flush()
    log.close()
    command = [sys.executable, "-c", RECORDER, run.id]
    done = subprocess.run(
        command,
        env=environment(target.home, host_name="flooded"),
        capture_output=True,
        text=True,
        timeout=600,
    )
    if done.returncode:
        report.problems.append(done.stderr[-500:])
        return
    peak_mib = int(done.stdout.split()[-1]) / 1024
    report.details = f"peak of a recorder {peak_mib:.0f} MiB"
    if peak_mib > MAX_WORKER_MIB:
        report.problems.append(f"the recorder used more than {MAX_WORKER_MIB} MiB")
    answer = target.client.get(f"/api/v1/runs/{run.id}/log", params={"limit": 1000}).json()
    if not any("log lines were dropped" in line["message"] for line in answer["items"]):
        report.problems.append("the run's log does not say that lines were dropped")


ATTACKS: dict[str, Callable[[Target, Report], None]] = {
    attack.__name__: attack
    for attack in (
        forged_addresses,
        wrong_logins,
        stalled_exports,
        unread_charts,
        half_open_connections,
        event_streams,
        locked_database,
        many_metrics,
        flooding_engine,
        costly_filters,
        many_queued_runs,
    )
}


def _list_runs(target: Target, params: dict[str, str], _: int) -> str:
    return target.status_of("GET", "/api/v1/runs", params=params)


def _divisor(target: Target) -> int:
    return SHORTER if target.short else 1


def _unread(target: Target, report: Report, path: str, n: int) -> None:
    request = get_request(target.url, path, target.session_headers)
    with ExitStack() as stack:
        clients = stack.enter_context(connected(target.url, request, n=n))
        sleep(HELD_S / 2 / _divisor(target))
        for _ in range(10):
            report.answers[f"another request {target.status_of('GET', '/api/v1/runs', 10.0)}"] += 1
        sleep(HELD_S / 2 / _divisor(target))
        for client in clients:
            client.settimeout(1.0)
            try:
                report.answers[str(status_of(client))] += 1
            except OSError:
                report.answers["none"] += 1


def _run_with_points(target: Target, *, n_metrics: int = 1, n_points: int = N_POINTS) -> str:
    if n_points == N_POINTS:
        n_points //= _divisor(target)
    run = make_run(target.engine, RunState.FAILED)
    chance = np.random.default_rng(1)
    for first in range(0, n_metrics, 50):
        for start in range(0, n_points, 100_000):
            n = min(100_000, n_points - start)
            at = list(range(start, start + n))
            values = chance.normal(size=n).tolist()
            points = [
                PointsEvent(
                    metric=f"flood/{m:04d}",
                    agent_steps=at,
                    frames=at,
                    wall_time_s=[float(i) for i in at],
                    episodes=at,
                    value=values,
                )
                for m in range(first, min(first + 50, n_metrics))
            ]
            with writing(target.engine) as session:
                metrics.append(session, run.id, 1, runs.bump_revision(session, run.id), points)
    return run.id


def many_runs(target: Target) -> None:
    """Store queued runs of a queue that no worker serves, once."""
    if target.has_many_runs:
        return
    target.has_many_runs = True
    run = make_run(target.engine, queue="gpu")
    columns: dict[str, Any] = {c.key: getattr(run, c.key) for c in Run.__mapper__.columns}
    rows = [columns | {"id": new_id(), "name": f"run {n}", "notes": "a note " * 20} for n in range(N_RUNS)]
    with writing(target.engine) as session:
        session.execute(insert(Run), rows)
