"""Starts of engines under odd conditions: a run's page has one clear reason. And a hundred starts."""

import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from sqlalchemy import Engine, select

from backend.coordination.context import Context
from backend.db import LogLine, Run
from backend.db.engine import reading
from backend.specs.environments.custom import FILE_VARIABLE, read_custom_environments
from tests.support import custom_environment
from tests.support.memory import own_bytes
from tests.support.rows import add_host, make_run
from tests.support.waiting import PATIENCE_S, until
from tests.workers.support import claim, engines_of, run_row
from workers import engine_server
from workers.engine_process import EngineProcess
from workers.engine_server import EngineServer
from workers.gameplay import Gameplay
from workers.supervisor import Supervisor

pytestmark = [pytest.mark.service, pytest.mark.long]

SHORT = {"stop": {"agent_steps": 200}, "config": {"n_e": 4, "n_w": 1, "evaluation_episodes": 2}}
ODD = """
["Custom/Odd-v0"]
entry_point = "odd:CartPoleEnv"
title = "Odd"
observation = "vector"
actions = "discrete"
action_names = ["LEFT", "RIGHT"]
"""
ODD_MODULES = {
    "fails": "raise ImportError('libodd.so is missing')",
    "prints": "print('x' * 1_000_000)",
    "starts a thread": "import threading as t\nt.Thread(target=t.Event().wait, daemon=True).start()",
    "forks": "import os, time\nif not os.fork():\n    time.sleep(600)",
}
FAILS_ONCE = """
import errno, os, sys
from workers.engine.commands import main
fork, calls = os.fork, []
def fail_second():
    calls.append(None)
    if len(calls) == 2:
        raise BlockingIOError(errno.EAGAIN, "no process")
    return fork()
os.fork = fail_second
sys.exit(main())
"""
"""A server whose first fork of an engine finds the process table full."""
STARTS, WARM_UP = 100, 20
GROWTH_BYTES = 2 * 2**20


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineServer]:
    loads = engine_server.loads_now()
    monkeypatch.setattr(engine_server, "loads_now", lambda: loads)  # pytest changes variables all the time
    server = EngineServer()
    yield server
    server.stop()


def _trained(context: Context, engine: Engine, server: EngineServer, **changes: Any) -> tuple[Run, list[str]]:
    """The row of a run after its attempt, and the lines of its log."""
    add_host(engine, "a", environments=["CartPole-v1", "ALE/Pong-v5", "Custom/Odd-v0"])
    run = make_run(engine, **changes)
    won = claim(engine)
    assert won is not None
    supervisor = Supervisor(context, won, gameplay=Gameplay(context.settings.redis), server=server)
    supervisor.start()
    supervisor.join(PATIENCE_S)
    with reading(engine) as session:
        lines = select(LogLine.message).where(LogLine.run_id == run.id).order_by(LogLine.id)
        return run_row(engine, run.id), [*session.scalars(lines)]


@pytest.mark.parametrize("how", list(ODD_MODULES))
def test_environment_whose_module_does_what_none_should(
    context: Context,
    engine: Engine,
    server: EngineServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
) -> None:
    module = f"{ODD_MODULES[how]}\nfrom gymnasium.envs.classic_control import CartPoleEnv\n"
    (tmp_path / "odd.py").write_text(module)
    file = custom_environment.write(tmp_path, ODD)
    monkeypatch.setenv(FILE_VARIABLE, str(file))
    custom = read_custom_environments(file)["Custom/Odd-v0"].describe().model_dump(mode="json")
    row, _ = _trained(context, engine, server, environment="Custom/Odd-v0", custom=custom, **SHORT)
    if how == "fails":
        assert (row.state, row.state_reason.count("libodd.so is missing")) == ("failed", 1)
    else:
        assert row.state == "finished", row.error
    until(lambda: not engines_of(context.settings.runs_dir))


def test_engine_waits_for_a_server_that_starts(
    context: Context, engine: Engine, server: EngineServer
) -> None:
    row, lines = _trained(context, engine, server, **SHORT)
    assert row.state == "finished", row.error
    assert not any("not forked" in line for line in lines)


def test_run_waits_while_the_process_table_is_full(
    context: Context, engine: Engine, server: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_server, "ENGINE_COMMAND", (sys.executable, "-c", FAILS_ONCE))
    row, lines = _trained(context, engine, server, **SHORT)
    assert row.state == "finished", row.error
    (waiting,) = [line for line in lines if line.startswith("waiting:")]
    assert "no engine can be forked: Resource temporarily unavailable" in waiting


def test_run_without_memory_fails_with_the_reason(
    context: Context, engine: Engine, server: EngineServer
) -> None:
    until(lambda: server.is_ready(0.1))
    assert server.pid is not None
    most = psutil.Process(server.pid).memory_info().vms + 2**30
    resource.prlimit(server.pid, resource.RLIMIT_AS, (most, most))
    changes = {"algorithm": "dqn", "environment": "ALE/Pong-v5", "stop": {"agent_steps": 10**7}}
    row, _ = _trained(context, engine, server, config={"replay_capacity": 10**6}, **changes)
    assert row.state == "failed"
    assert "Unable to allocate" in row.state_reason


def test_a_hundred_starts_leave_no_descriptor_and_no_memory(server: EngineServer, tmp_path: Path) -> None:
    def sizes() -> tuple[list[int], list[int]]:
        assert server.pid is not None
        pids = [os.getpid(), server.pid]
        return [len(os.listdir(f"/proc/{pid}/fd")) for pid in pids], [*map(own_bytes, pids)]

    until(lambda: server.is_ready(0.1))
    for k in range(STARTS):
        if k == WARM_UP:
            descriptors, memory = sizes()
        output = tmp_path / "output.log"
        process = EngineProcess(["train", str(tmp_path)], output=output, control=True, fork=server.fork)
        process.wait_for_exit(PATIENCE_S)
        assert process.reap() == 2  # there is no spec
    assert server.pid is not None
    assert not psutil.Process(server.pid).children()
    descriptors_after, memory_after = sizes()
    assert descriptors_after == descriptors
    for before, after in zip(memory, memory_after, strict=True):
        assert after - before < GROWTH_BYTES
