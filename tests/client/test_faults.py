"""Scripts log while web process and database are killed: every point once, in order."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import psutil
import pytest

import callboard
from tests.support.databases import PostgresServer, short_folder
from tests.support.installation import Installation, installation
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]

N_SCRIPTS = 10
N_STEPS = 3_000
RECOVERY_S = 600.0
"""Deadline for a service to start again and for scripts, which retry ever less often, to notice."""

LOGS = """
import sys, time, callboard
with callboard.init(algorithm="a", environment="e", seed=int(sys.argv[1]), tags=["faults"]) as run:
    for step in range(int(sys.argv[2])):
        run.log({"loss/policy": step, "loss/value": -step}, agent_steps=step)
        if step % 100 == 99:
            run.episode(step, 100, agent_steps=step)
            run.text(f"at {step}")
            time.sleep(0.3)
    print(run.flush(timeout_s=1_000), run.n_dropped, flush=True)
    sys.stdin.readline()  # until the last kill is over
"""


@pytest.fixture
def postgres() -> Iterator[PostgresServer]:
    """A server of this test's own, which it kills."""
    with short_folder() as folder:
        server = PostgresServer(folder)
        yield server
        server.close()


def kill_database(server: PostgresServer) -> None:
    """Kill every process of the server but the first, which then recovers the database."""
    for process in psutil.Process(server.pid).children():
        with suppress(psutil.NoSuchProcess):
            process.kill()


def kill_web(running: Installation) -> None:
    """Kill the web process; `callboard up` starts it again."""
    web = running.children().get("web")
    if web is not None:
        web.send_signal(signal.SIGKILL)


@pytest.mark.long
@pytest.mark.service
@pytest.mark.timeout(3_600)
def test_ten_scripts_log_while_web_and_database_are_killed(
    postgres: PostgresServer, spools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.url(postgres.create_database())
    with (
        short_folder() as folder,
        installation(folder / "home", database_url=url) as running,
        ExitStack() as scripts,
    ):
        key = folder / "home" / "command-line-key"
        token = until(lambda: key.read_text("utf-8") if key.is_file() else None)
        monkeypatch.setenv("CALLBOARD_URL", running.url)
        monkeypatch.setenv("CALLBOARD_TOKEN", token)
        env = os.environ | {"PYTHONPATH": str(ROOT / "client")}
        started = [
            scripts.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", LOGS, str(seed), str(N_STEPS)],
                    env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                    text=True,
                )
            )
            for seed in range(N_SCRIPTS)
        ]  # fmt: skip
        with callboard.connect() as client:

            def progress() -> list[int]:
                try:
                    return [run.data["agent_steps"] for run in client.runs("tag:faults")]
                except callboard.Unreachable:
                    return []

            def go_on(before: int) -> bool:
                return before < sum(progress()) or before == N_SCRIPTS * (N_STEPS - 1)

            until(lambda: sum(steps > 200 for steps in progress()) == N_SCRIPTS, RECOVERY_S, every_s=0.5)
            for kill in 2 * [partial(kill_web, running), partial(kill_database, postgres)]:
                before = sum(progress())
                kill()
                until(partial(go_on, before), RECOVERY_S, every_s=0.5)
            until(lambda: sum(progress()) == N_SCRIPTS * (N_STEPS - 1), RECOVERY_S, every_s=0.5)
            ended = [script.communicate("\n", timeout=600)[0] for script in started]
            assert ended == ["True 0\n"] * N_SCRIPTS
            runs = client.runs("tag:faults")
            assert sorted(run.seed for run in runs) == list(range(N_SCRIPTS))
            assert {run.state for run in runs} == {"finished"}
            series = runs.series("loss/policy", "loss/value", "rollout/episode_return")
        for run in runs:
            points = series.by_run()[run.id]
            for metric, wanted in (
                ("loss/policy", [*range(N_STEPS)]),
                ("loss/value", [-step for step in range(N_STEPS)]),
                ("rollout/episode_return", [*range(99, N_STEPS, 100)]),
            ):
                assert points.value[points.metric == metric].tolist() == wanted, (run.seed, metric)
    assert list(spools.iterdir()) == []
