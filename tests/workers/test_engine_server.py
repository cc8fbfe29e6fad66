"""The engine server, and engines that it forks beside engines that are started: real processes."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import structlog
import torch
from sqlalchemy import Engine, select

from backend import specs
from backend.coordination.context import Context
from backend.db import Evaluation, Job, LogLine
from backend.db.engine import reading, writing
from backend.runs.evaluations import service as evaluations
from backend.runs.runs import actions
from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments.custom import FILE_VARIABLE, read_custom_environments
from backend.specs.events import ProvenanceEvent, StartedEvent
from backend.specs.run import RunSpec
from tests.support import custom_environment
from tests.support.engine_process import logged
from tests.support.rows import add_host, make_run
from tests.support.waiting import PATIENCE_S, until
from tests.workers.engine.contract_runs import small
from tests.workers.engine.training.training_runs import columns
from tests.workers.support import ENDLESS, FAKE_ENGINE, claim, run_row, running
from workers import engine_server, jobs
from workers.engine.processes.child import adopting_orphans
from workers.engine.training import checkpoint
from workers.engine_process import EngineProcess
from workers.engine_server import EngineServer, EngineServerError
from workers.gameplay import Gameplay
from workers.jobs import JobRunner
from workers.supervisor import Supervisor

pytestmark = pytest.mark.service

PYTEST_VARIABLE = "PYTEST_CURRENT_TEST"
"""Pytest changes it all the time."""

FORK_SERVER_VARIABLES = ("CALLBOARD_FORK_SERVER_ENGINE", "CALLBOARD_FORK_SERVER_FOLDER")

Fork = Callable[..., int]

PROBE = """
["Custom/Probe-v0"]
entry_point = "probe:Probe"
title = "Probe"
observation = "vector"
actions = "discrete"
action_names = ["LEFT", "RIGHT"]
"""
PROBE_MODULE = """
import json, os, random, signal, sys, threading
import cv2, numba, numpy, torch
handlers = [str(signal.getsignal(number)).split(" at ")[0] for number in range(1, 32)]
facts = {
    "environ": dict(os.environ),
    "argv": sys.argv[1:],
    "command": sys.orig_argv,
    "main": sys.modules["__main__"].__spec__.name,
    "folder": os.getcwd(),
    "signals": handlers,
    "blocked": [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
    "leads": os.getpid() == os.getpgrp() == os.getsid(0),
    "parent": os.getppid(),
    "niceness": os.getpriority(os.PRIO_PROCESS, 0),
    "torch": torch.get_num_threads(),
    "denormal": float(torch.tensor(1e-39) * 1.0),
    "openmp": torch.__config__.parallel_info(),
    "numba": [numba.config.NUMBA_NUM_THREADS, "numba.np.ufunc.omppool" in sys.modules],
    "random": [random.random(), numpy.random.random(), torch.initial_seed()],
    "python_threads": threading.active_count(),
}
print(json.dumps(facts), flush=True)
raise RuntimeError("probed")
"""

WORKER = """
import sys, threading
from pathlib import Path
from workers.engine_process import EngineProcess
from workers.engine_server import EngineServer
folder = Path(sys.argv[1])
server, engines = EngineServer(), []
while not server.is_ready(1.0):
    pass
def start():
    output = folder / "output.log"
    engines.append(EngineProcess(["train", str(folder)], output=output, fork=server.fork))
starting = threading.Thread(target=start)
starting.start()
starting.join()
print("pids", engines[0].pid, server.pid, flush=True)
threading.Event().wait()
"""


@pytest.fixture(autouse=True, scope="module")
def constant_environment() -> Iterator[None]:
    """The server would start anew for each change."""
    now = engine_server.loads_now
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            engine_server,
            "loads_now",
            lambda: {k: v for k, v in now().items() if k != PYTEST_VARIABLE},
        )
        yield


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("environments")
    (folder / "probe.py").write_text(PROBE_MODULE)
    with pytest.MonkeyPatch.context() as patch:
        file = custom_environment.write(folder, PROBE)
        patch.setenv(FILE_VARIABLE, str(file))
        yield file


def _await_ready(server: EngineServer) -> None:
    until(lambda: server.is_ready(0.1))


@pytest.fixture(scope="module")
def shared(environments: Path) -> Iterator[EngineServer]:
    server = EngineServer()
    yield server
    server.stop()


@pytest.fixture
def server(shared: EngineServer) -> EngineServer:
    """The server of this module's tests; each may end it."""
    _await_ready(shared)
    return shared


def _start(folder: Path, fork: Fork | None, spec: RunSpec | None = None) -> EngineProcess:
    folder.mkdir(exist_ok=True)
    (folder / "spec.json").write_text("{}" if spec is None else spec.model_dump_json())
    return EngineProcess(["train", str(folder)], output=folder / "output.log", control=True, fork=fork)


def _await_training(folder: Path) -> None:
    until(lambda: any(isinstance(event, StartedEvent) for event in logged(folder)))


def _end(process: EngineProcess) -> int:
    until(process.has_exited)
    return process.reap()


def _endless(algorithm: str = "paac", **changes: Any) -> RunSpec:
    return small(algorithm, "CartPole-v1", stop={"agent_steps": ENDLESS}, config=changes)


def _descriptors(pid: int) -> list[str]:
    """What its descriptors are: the first three, then the kinds of others."""
    folder = Path(f"/proc/{pid}/fd")
    links = [os.readlink(folder / name) for name in sorted(os.listdir(folder), key=int)]
    return links[:3] + sorted(link.partition(":")[0] for link in links[3:])


def test_forked_engine_is_like_one_that_was_started(
    server: EngineServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in FORK_SERVER_VARIABLES:  # of forks in this process, by other tests
        monkeypatch.delenv(name, raising=False)
    entry = read_custom_environments(Path(os.environ[FILE_VARIABLE]))["Custom/Probe-v0"]
    spec = small("paac", "Custom/Probe-v0", custom=entry.describe().model_dump(mode="json"))
    facts, randoms = [], []
    for fork in (server.fork, server.fork, None):
        process = _start(tmp_path, fork, spec)
        assert _end(process) == 1
        fact = json.loads(process.output_tail())
        assert (fact["parent"], fact["main"]) == (os.getpid(), "workers.engine.__main__")
        assert fact["argv"] == fact["command"][3:] == ["train", str(tmp_path), *fact["argv"][2:]]
        assert fact["argv"][2::2] == ["--parent", "--control-fd"]
        randoms += fact.pop("random")
        del fact["environ"][PYTEST_VARIABLE]
        for name in FORK_SERVER_VARIABLES:  # the other has none before its first child
            assert (fact["environ"].pop(name, None) is None) == (fork is None)
        # The number of the socket, and the environment's temporary names, may differ.
        facts.append(fact | {"argv": len(fact["argv"]), "command": fact["command"][:4]})
        assert "RuntimeError: probed" in logged(tmp_path)[-1].model_dump_json()
        (tmp_path / "output.log").unlink()
    assert len({*randoms}) == 9
    for fact in facts[:2]:
        assert {name: (fact[name], facts[2][name]) for name in fact if fact[name] != facts[2][name]} == {}


def test_forked_engine_has_nothing_of_others(server: EngineServer, tmp_path: Path) -> None:
    other = _start(tmp_path / "other", server.fork, _endless())
    _await_training(tmp_path / "other")
    descriptors, lines = [], []
    for fork in (server.fork, None):
        folder = tmp_path / f"a {fork is None}"
        process = _start(folder, fork, _endless())
        _await_training(folder)
        assert _descriptors(process.pid)[1:3] == [str(folder / "output.log")] * 2
        descriptors.append([link.replace(str(folder), "") for link in _descriptors(process.pid)])
        lines.append(psutil.Process(process.pid).cmdline())
        process.kill()
        assert _end(process) == -signal.SIGKILL
        (started, *_) = [event for event in logged(folder) if isinstance(event, ProvenanceEvent)]
        assert started.provenance.command[1:5] == ["-m", "workers.engine", "train", str(folder)]
    # The two pipes are to its fork server, and to the tracker of resources that this starts with.
    links = descriptors[1]
    assert descriptors[0][:3] == links[:3]
    assert sorted(descriptors[0][3:]) == sorted([*links[3:], "pipe", "pipe"])
    assert " ".join(lines[0]).replace("a False", "a True").partition(" --control-fd")[0] in " ".join(lines[1])
    other.kill()
    assert _end(other) == -signal.SIGKILL


def test_exit_statuses_of_forked_engines(server: EngineServer, tmp_path: Path) -> None:
    process = _start(tmp_path, server.fork)
    assert _end(process) == 2
    assert process.output_tail().startswith("spec.json:")
    assert (process.returncode, process.reap()) == (2, 2)
    process = _start(tmp_path / "stopped", server.fork, _endless())
    _await_training(tmp_path / "stopped")
    process.terminate()
    assert _end(process) == 0
    assert logged(tmp_path / "stopped")[-1].state == "stopped"  # type: ignore[union-attr]


def test_kill_of_forked_engine_ends_its_children(server: EngineServer, tmp_path: Path) -> None:
    process = _start(tmp_path, server.fork, _endless("a3c"))
    _await_training(tmp_path)
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) > 2
    process.kill()
    assert _end(process) == -signal.SIGKILL
    until(lambda: not any(running(child.pid) for child in children))


def test_engine_that_a_thread_forked_dies_with_its_worker(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(_endless().model_dump_json())
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout is not None
        line = next(line for line in worker.stdout if line.startswith("pids"))
        pids = [int(pid) for pid in line.split()[1:]]
        _await_training(tmp_path)  # the thread that has forked it has ended
        processes = [psutil.Process(pid) for pid in pids]
        worker.kill()
    until(lambda: not any(running(process.pid) for process in processes))


def test_engine_survives_its_server_which_starts_anew(server: EngineServer, tmp_path: Path) -> None:
    first = server.pid
    process = _start(tmp_path / "a", server.fork, _endless())
    assert first is not None
    os.kill(first, signal.SIGKILL)
    until(lambda: running(first) is None)
    with pytest.raises(ConnectionError, match="engine server has ended"):
        server.fork([], [1, 2])
    _await_ready(server)
    assert server.pid not in (first, None)
    _await_training(tmp_path / "a")
    again = _start(tmp_path / "b", server.fork)
    assert _end(again) == 2
    assert not process.has_exited()
    process.kill()
    assert _end(process) == -signal.SIGKILL


@pytest.mark.parametrize("change", ["package", "code", "environment"])
def test_server_starts_anew_when_what_it_has_loaded_has_changed(
    environments: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    packages, code = tmp_path / "site-packages", tmp_path / "code"
    for folder in (packages, code):
        folder.mkdir()
        os.utime(folder, (1, 1))
    (code / "method.py").touch()
    os.utime(code / "method.py", (1, 1))
    monkeypatch.syspath_prepend(packages)
    monkeypatch.setattr(specs, "__path__", [str(code)])
    monkeypatch.setattr(engine_server, "ENGINE_COMMAND", (sys.executable, "-c", STAND_IN))
    server = EngineServer()
    _await_ready(server)
    first = server.pid
    _await_ready(server)
    assert server.pid == first
    if change == "package":
        (packages / "extra").mkdir()
    elif change == "code":
        (code / "method.py").write_text("x = 1")
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", "3")
    _await_ready(server)
    assert server.pid != first
    server.stop()
    assert server.pid is None
    assert not server.is_ready(0.0)


STAND_IN = """
import socket, sys
requests = socket.socket(fileno=int(sys.argv[3]))
requests.send(b"ready")
requests.recv(1)
"""
"""A server that loads at once."""

WITHOUT_PROCESSES = """
import errno, os, sys
from workers.engine.commands import main
fork, calls = os.fork, []
def fail_last():
    calls.append(None)
    if len(calls) == {last}:
        raise BlockingIOError(errno.EAGAIN, "no process")
    return fork()
os.fork = fail_last
sys.exit(main())
"""

WITH_THREAD = """
import sys, threading
from workers.engine.commands import main
threading.Thread(target=threading.Event().wait, daemon=True).start()
sys.exit(main())
"""


@pytest.mark.parametrize(
    "last", [pytest.param(2, id="first"), pytest.param(3, id="second", marks=pytest.mark.long)]
)
def test_fork_that_fails_is_an_error_to_retry(monkeypatch: pytest.MonkeyPatch, last: int) -> None:
    code = WITHOUT_PROCESSES.format(last=last)
    monkeypatch.setattr(engine_server, "ENGINE_COMMAND", (sys.executable, "-c", code))
    server = EngineServer()
    _await_ready(server)
    with pytest.raises(BlockingIOError, match="no engine can be forked: Resource temporarily") as raised:
        server.fork(["train"], [1, 2])
    assert raised.value.errno == errno.EAGAIN
    server.stop()


@pytest.mark.parametrize(("code", "status"), [("raise SystemExit(7)", 7), (WITH_THREAD, 1)])
def test_server_that_cannot_load_is_an_error_with_its_status(
    monkeypatch: pytest.MonkeyPatch, code: str, status: int
) -> None:
    monkeypatch.setattr(engine_server, "ENGINE_COMMAND", (sys.executable, "-c", code))
    server = EngineServer()
    with pytest.raises(EngineServerError, match=f"status {status},"):
        _await_ready(server)
    assert server.pid is None
    server.stop()


def test_engines_that_start_together_are_distinct(server: EngineServer, tmp_path: Path) -> None:
    started: list[EngineProcess] = []
    threads = [
        threading.Thread(target=lambda k=k: started.append(_start(tmp_path / str(k), server.fork)))
        for k in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({process.pid for process in started}) == 6
    assert [_end(process) for process in started] == [2] * 6
    outputs = [(tmp_path / str(k) / "output.log").read_text() for k in range(6)]
    assert [text.count("spec.json:") for text in outputs] == [1] * 6


def _trained(folder: Path, fork: Fork | None, spec: RunSpec) -> tuple[Any, Any]:
    """Returns of episodes, in an order that does not depend on when they were reported, and theta of the last
    checkpoint."""
    process = _start(folder, fork, spec)
    assert _end(process) == 0, process.output_tail()
    newest = checkpoint.newest(folder / "checkpoints")
    assert newest is not None
    theta = checkpoint.load(folder / "checkpoints" / newest)["learner"]["theta"]
    return sorted(columns(logged(folder), "rollout/episode_return")), theta


@pytest.mark.parametrize(
    "algorithm",
    [
        pytest.param(name, marks=() if name == "paac" else pytest.mark.long)
        for name, algorithm in ALGORITHMS.items()
        if algorithm.reproducibility != "none"
    ],
)
def test_equal_seeds_give_equal_runs_forked_or_not(
    server: EngineServer, tmp_path: Path, algorithm: str
) -> None:
    spec = small(algorithm, "CartPole-v1", stop={"agent_steps": 1_000}, config={"evaluation_episodes": 0})
    returns, theta = _trained(tmp_path / "forked", server.fork, spec)
    assert returns
    returns_again, theta_again = _trained(tmp_path / "forked again", server.fork, spec)
    returns_started, theta_started = _trained(tmp_path / "started", None, spec)
    assert returns == returns_again == returns_started
    assert torch.equal(theta, theta_again)
    assert torch.equal(theta, theta_started)


class _DeadServer(EngineServer):
    """A server that does not start."""

    def is_ready(self, timeout_s: float) -> bool:
        raise EngineServerError("it ended with status 7")


@pytest.mark.parametrize("why", ["gpu", "custom", "dead"])
def test_engine_that_is_not_forked_has_the_reason_in_its_log(
    context: Context, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    add_host(engine, "a", environments=["CartPole-v1", "Custom/Line-v0"])
    changes: dict[str, Any] = {}
    if why == "custom":
        entry = read_custom_environments(custom_environment.write(tmp_path))["Custom/Line-v0"]
        changes = {"environment": "Custom/Line-v0", "custom": entry.describe().model_dump(mode="json")}
    run = make_run(engine, stop={"agent_steps": 5}, **changes)
    won = claim(engine)
    assert won is not None
    server = _DeadServer() if why == "dead" else EngineServer()
    supervisor = Supervisor(
        context,
        won,
        gameplay=Gameplay(context.settings.redis),
        command=FAKE_ENGINE,
        server=server,
        may_use_gpu=why == "gpu",
    )
    with structlog.testing.capture_logs() as lines:
        supervisor.start()
        supervisor.join(PATIENCE_S)
    row = run_row(engine, run.id)
    assert row.state == "finished", row.error
    reason = {
        "gpu": "it may use a GPU",
        "custom": "Custom/Line-v0 is a custom environment",
        "dead": "the engine server does not start: it ended with status 7",
    }[why]
    assert [line["not_forked"] for line in lines if line["event"] == "engine.started"] == [reason]
    with reading(engine) as session:
        query = select(LogLine.message).where(LogLine.run_id == run.id, LogLine.level == "info")
        messages = [*session.scalars(query)]
    assert f"its engine is a process of its own, not forked: {reason}" in messages
    assert server.pid is None


def test_engines_of_runs_and_evaluations_are_forked(
    context: Context, engine: Engine, server: EngineServer
) -> None:
    add_host(engine, "a")
    config = {"n_e": 4, "n_w": 1, "evaluation_episodes": 0}
    run = make_run(engine, stop={"agent_steps": 500}, config=config)
    won = claim(engine)
    assert won is not None
    supervisor = Supervisor(context, won, gameplay=Gameplay(context.settings.redis), server=server)
    with structlog.testing.capture_logs() as lines:
        supervisor.start()
        supervisor.join(PATIENCE_S)
    row = run_row(engine, run.id)
    assert row.state == "finished", row.error
    assert [line["not_forked"] for line in lines if line["event"] == "engine.started"] == [None]
    with writing(engine) as session:
        evaluation, _ = evaluations.request(session, run.id, n_episodes=2, seed=5)
        job = jobs.claim(session, "a", 60, [run.environment])
    assert job is not None
    runner = JobRunner(context, job, command=("false",), server=server)
    runner.start()
    runner.join(PATIENCE_S)
    with reading(engine) as session:
        assert len(session.get_one(Evaluation, evaluation.id).returns) == 2, session.get_one(
            Job, job.id
        ).error


def test_run_can_be_stopped_while_the_server_loads(
    context: Context, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_host(engine, "a")
    hangs = (sys.executable, "-c", "import time; time.sleep(600)")
    monkeypatch.setattr(engine_server, "ENGINE_COMMAND", hangs)
    run = make_run(engine)
    won = claim(engine)
    assert won is not None
    server = EngineServer()
    supervisor = Supervisor(context, won, gameplay=Gameplay(context.settings.redis), server=server)
    supervisor.start()
    until(lambda: server.pid is not None)
    with writing(engine) as session:
        actions.stop(session, run.id, kill=False)
    supervisor.request("stop")
    supervisor.join(PATIENCE_S)
    assert run_row(engine, run.id).state == "stopped"
    server.stop()


ORPHAN = """
import os, time
if not os.fork():
    print(os.getpid(), flush=True)
    os.close(1)
    time.sleep(600)
"""


def _orphan() -> psutil.Process:
    """A process whose parent, the leader of a session like an engine, has ended."""
    done = subprocess.run(
        [sys.executable, "-c", ORPHAN],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        start_new_session=True,
    )
    return psutil.Process(int(done.stdout))


def test_orphans_are_adopted_only_meanwhile_and_reaped_at_the_next_fork(
    server: EngineServer, tmp_path: Path
) -> None:
    other = _orphan()
    assert other.ppid() != os.getpid()
    other.kill()
    with adopting_orphans():
        orphan = _orphan()
    assert orphan.ppid() == os.getpid()
    orphan.kill()
    until(lambda: orphan.status() == psutil.STATUS_ZOMBIE)
    assert _end(_start(tmp_path, server.fork)) == 2
    assert not psutil.pid_exists(orphan.pid)
    other = _orphan()
    assert other.ppid() != os.getpid()
    other.kill()
