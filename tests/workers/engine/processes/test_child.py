"""Child processes: messages, failures, replacement, and no process that outlives the one it works for."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

import psutil
import pytest

from tests.support.waiting import PATIENCE_S, until
from workers.engine.processes.child import Channel, Child, ChildDiedError, ChildFailedError, serve, stop
from workers.engine.processes.child_pool import MAX_UNPRODUCTIVE_DEATHS, REPLACED, ChildPool

pytestmark = pytest.mark.service

CHILD = (
    "import os; from workers.engine.processes.child import become_child; "
    "become_child(os.getppid()); print('ready', flush=True); {wait}"
)
PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE, text=True)
child.stdout.readline()
print(child.pid, flush=True)
child.wait()
"""
WAIT = "import time; time.sleep(600)"


def test_child_dies_with_a_killed_engine() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, CHILD.format(wait=WAIT)], stdout=subprocess.PIPE, text=True
    )
    with parent:
        assert parent.stdout is not None
        helper = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    until(lambda: _is_gone(helper))


def _is_gone(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_child_ignores_sigint_and_sigterm(which: signal.Signals) -> None:
    wait = f"import os, signal; os.kill(os.getpid(), {int(which)}); print('still here', flush=True)"
    done = subprocess.run(
        [sys.executable, "-c", CHILD.format(wait=wait)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["ready", "still here"]


SLOW_ENGINE = """
import sys, time
from pathlib import Path
while not Path(sys.argv[2], "go").exists():
    time.sleep(0.01)
from workers.engine.commands import main
sys.exit(main())
"""
WORKER = """
import sys, threading
from pathlib import Path
from workers.engine_process import EngineProcess
folder = Path(sys.argv[1])
engine = EngineProcess(
    ["evaluate", str(folder), "--checkpoint", "none"],
    output=folder / "said.log", command=[sys.executable, "-c", sys.argv[2]],
)
print(engine.pid, flush=True)
threading.Event().wait()
"""


def test_engine_exits_when_its_worker_died_during_start(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WORKER, str(tmp_path), SLOW_ENGINE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        engine = psutil.Process(int(worker.stdout.readline()))
        worker.kill()
    (tmp_path / "go").touch()
    until(lambda: _is_gone(engine))
    assert (tmp_path / "said.log").read_text() == ""


def _serve(channel: Channel) -> None:
    serve(channel, _handle)


def _handle(kind: str, content: int) -> object:
    if kind == "divide":
        return 1 / content
    return os.getpid() if kind == "pid" else content


def _exit(channel: Channel) -> None:
    channel.receive()


def _sleep(channel: Channel) -> None:
    channel.send("ready", os.getpid())
    time.sleep(600)


@pytest.fixture
def child() -> Iterator[Child]:
    child = Child(_serve, name="child 1")
    yield child
    stop([child])


def test_child_replies_to_requests(child: Child) -> None:
    assert [child.request("echo", k) for k in range(3)] == [0, 1, 2]
    assert child.request("pid") == child.process.pid


def test_exception_in_a_child_reaches_the_parent_with_its_traceback(child: Child) -> None:
    with pytest.raises(ChildFailedError, match=r"Traceback[\s\S]*_handle[\s\S]*ZeroDivisionError"):
        child.request("divide", 0)
    assert child.join() == 1


def test_request_to_a_killed_child_names_the_signal(child: Child) -> None:
    child.process.kill()
    child.process.join()
    with pytest.raises(ChildDiedError, match="child 1 was killed by signal 9") as died:
        child.request("echo")
    assert died.value.signal == signal.SIGKILL


@pytest.mark.parametrize("error", [EOFError("unexpected EOF"), ConnectionResetError()])
def test_child_whose_fork_server_is_killed_at_its_start_has_died(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def killed(process: BaseProcess) -> None:
        raise error

    monkeypatch.setattr(BaseProcess, "start", killed)
    with pytest.raises(ChildDiedError, match="mine died with its fork server") as caught:
        Child(_serve, name="mine")
    assert caught.value.signal == signal.SIGKILL


def test_stop_ends_a_child_that_ignores_its_closed_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.engine.processes.child.STOP_TIMEOUT_S", 0.1)
    child = Child(_sleep, name="child 1")
    assert child.channel.receive() == ("ready", child.process.pid)
    stop([child])
    assert child.process.exitcode == -signal.SIGKILL


def test_unreferenced_child_is_killed() -> None:
    child = Child(_sleep, name="child 1")
    process = psutil.Process(child.process.pid)
    del child
    assert psutil.wait_procs([process], timeout=PATIENCE_S)[1] == []


@pytest.fixture
def pool() -> Iterator[ChildPool]:
    progress = {0: 0, 1: 0}
    pool = ChildPool(lambda k: Child(_sleep, name=f"child {k}"), progress.__getitem__)
    pool.resize(1)
    yield pool
    for pid in pool.pids:
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
    pool.resize(0)


def test_pool_replaces_a_killed_child_until_too_many_died_without_progress(pool: ChildPool) -> None:
    for _ in range(MAX_UNPRODUCTIVE_DEATHS - 1):
        [(_, kind, pid)] = pool.receive(PATIENCE_S)
        assert kind == "ready"
        os.kill(pid, signal.SIGKILL)
        replaced = "child 0 was killed by signal 9; another takes its place"
        assert pool.receive(PATIENCE_S) == [(0, REPLACED, replaced)]
    [(_, _, pid)] = pool.receive(PATIENCE_S)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(ChildFailedError, match="child 0 was killed by signal 9 without progress, 3 times"):
        pool.receive(PATIENCE_S)
    assert pool.numbers == []


def test_pool_raises_when_a_child_exits_by_itself() -> None:
    pool = ChildPool(lambda k: Child(_exit, name="child 0"), lambda k: 0)
    pool.resize(1)
    pool.send(0, "exit")
    with pytest.raises(ChildFailedError, match="child 0 ended with exit status 0"):
        pool.receive(PATIENCE_S)


def _exit_at_once(channel: Channel) -> None:
    """Return."""


def _start_a_child(channel: Channel) -> None:
    Child(_exit_at_once, name="grandchild").join()
    channel.send("processes", [process.pid for process in psutil.Process().children()])


ENGINE_WITH_GRANDCHILD = """
import psutil
from tests.workers.engine.processes.test_child import _exit_at_once, _start_a_child
from workers.engine.processes.child import Child, preload
if __name__ == "__main__":
    preload()
    child = Child(_start_a_child, name="child 1")
    fork_servers = [psutil.Process(pid) for pid in child.channel.receive()[1]]
    assert fork_servers
    child.join()
    assert psutil.wait_procs(fork_servers, timeout=240)[1] == []
    Child(_exit_at_once, name="child 2").join()
"""


@pytest.mark.long
def test_child_starts_after_the_fork_server_of_another_child_has_exited() -> None:
    command = [sys.executable, "-c", ENGINE_WITH_GRANDCHILD]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": os.getcwd()})


ENGINE_WITH_CHILD = """
from tests.workers.engine.processes.test_child import _exit_at_once
from workers.engine.processes.child import Child
if __name__ == "__main__":
    Child(_exit_at_once, name="child 1").join()
"""


def test_child_starts_when_the_temporary_folder_has_a_long_path(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 100)  # a Unix socket's path may have 107 bytes
    folder.mkdir()
    environment = os.environ | {"TMPDIR": str(folder), "PYTHONPATH": os.getcwd()}
    subprocess.run([sys.executable, "-c", ENGINE_WITH_CHILD], check=True, env=environment)


FOREIGN_FORK_SERVER = """
import multiprocessing
import workers.engine.processes.child
if __name__ == "__main__":
    process = multiprocessing.get_context("forkserver").Process(target=print)
    process.start()
    process.join()
"""


def test_fork_server_of_a_program_that_an_engine_started_leaves_the_engines_folder(tmp_path: Path) -> None:
    engines = {
        "CALLBOARD_FORK_SERVER_FOLDER": str(tmp_path),
        "CALLBOARD_FORK_SERVER_ENGINE": str(os.getpid()),
    }
    for inherited in (engines, {}):
        environment = {name: value for name, value in os.environ.items() if name not in engines}
        environment |= {"PYTHONPATH": os.getcwd(), **inherited}
        # Its output ends when its fork server has exited too.
        subprocess.run(
            [sys.executable, "-c", FOREIGN_FORK_SERVER], check=True, capture_output=True, env=environment
        )
    assert tmp_path.exists()


IDLE_ENGINE = """
import threading
from workers.engine.processes.child import Child, stop
from tests.workers.engine.processes.test_child import _serve
if __name__ == "__main__":
    child = Child(_serve, name="child 1")
    print(child.request("pid"), flush=True)
    stop([child])
    print("stopped", flush=True)
    threading.Event().wait()
"""


def test_killed_engine_with_suspended_children_leaves_nothing(short_tmp: Path) -> None:
    environment = os.environ | {"TMPDIR": str(short_tmp), "PYTHONPATH": os.getcwd()}
    command = [sys.executable, "-c", IDLE_ENGINE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as engine:
        assert engine.stdout is not None
        engine.stdout.readline()
        assert engine.stdout.readline() == "stopped\n"
        left = psutil.Process(engine.pid).children(recursive=True)
        assert list(short_tmp.iterdir()), "the fork server's socket"
        engine.kill()
    assert psutil.wait_procs(left, timeout=PATIENCE_S)[1] == []
    assert not list(short_tmp.iterdir())
