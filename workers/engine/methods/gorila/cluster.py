"""The Ray instance of a Gorila run: a local one, or the cluster at `CALLBOARD_RAY_ADDRESS`.

Ray is imported only by this module, `remote` and `process_group`, and only in the processes of Gorila runs.
"""

import atexit
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from workers.engine.processes.child import ChildDiedError
from workers.engine.processes.phases import enter_phase

ADDRESS = "CALLBOARD_RAY_ADDRESS"
_FOLDER = re.compile(r"callboard-ray-(\d+)-")
_CPUS_PER_PROCESS = 0.0001
"""Ray's smallest request; a process that requests nothing is placed on any machine."""
_START_TIMEOUTS = ("RAY_raylet_start_wait_time_s", "RAY_gcs_server_port_wait_time_s")
_START_TIMEOUT_S = 60
"""Timeout of each of Ray's two servers; under heavy load Ray's own 30 s are too short."""
_TRIES = 6
"""Attempts to start Ray: its server exits if its agents take more than 15 s, which is not configurable."""
_NOT_STARTED = (
    f"Ray did not start in {_TRIES} attempts, probably because this machine is overloaded: "
    "resume the run when it is less busy"
)
"""Ray's own message, which names its internal parts, is in the traceback."""
_SERVERS = ("gcs_server", "raylet")
"""Process names of Ray's servers."""
_DEATH_TIMEOUT_S = 3.0
"""How long a killed process may take to die."""
_MIN_STORE_BYTES = 80 * 2**20
"""Smallest object store that Ray accepts."""


class RayCluster:
    """A connection to Ray; `start` starts processes."""

    def __init__(self, store_bytes: int) -> None:
        """Connect, or start Ray without dashboard or usage statistics, on the loopback interface.

        Args:
            store_bytes: size of the object store, if Ray is started here.

        Raises:
            ConnectionError: there is no cluster at `CALLBOARD_RAY_ADDRESS`.
        """
        self._folder: Path | None = None
        self._abandoned = False
        self._clean_up_process: subprocess.Popen[bytes] | None = None
        self._closed = threading.Event()
        self._servers: list[psutil.Process] = []
        address = os.environ.get(ADDRESS)
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        # Ray would repeat on standard output what the run's log has already.
        os.environ["RAY_DEDUP_LOGS_SKIP_REGEX"] = "."
        if address is None:
            for name in _START_TIMEOUTS:
                os.environ.setdefault(name, str(_START_TIMEOUT_S))
            _remove_stale_folders()
            # It holds sockets, whose paths must be short.
            self._folder = Path(tempfile.mkdtemp(prefix=f"callboard-ray-{os.getpid()}-", dir="/tmp"))
            self._clean_up_process = _start_clean_up(self._folder)
            # Despite its name it binds every service to 127.0.0.1.
            os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
            # A token that only these processes have keeps other users of this machine out.
            os.environ["RAY_AUTH_MODE"] = "token"
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        import ray

        self._ray: Any = ray
        enter_phase("starting Ray" if address is None else "connecting to Ray")
        common: dict[str, Any] = {"log_to_driver": False, "logging_level": "error", "namespace": "callboard"}
        if self._folder is not None:
            address = "local"
            common |= {
                "num_cpus": 1,
                "num_gpus": 0,
                "include_dashboard": False,
                "object_store_memory": max(store_bytes, _MIN_STORE_BYTES),
                "_temp_dir": str(self._folder),
                "_system_config": {
                    "enable_worker_prestart": False,
                    "prestart_worker_first_driver": False,
                    "worker_niceness": 0,  # the engine has its own
                },
            }
        try:
            self._connect(address, common)
            self._nodes = [node["NodeID"] for node in self._ray.nodes() if node["Alive"]]
            if self._folder is not None:
                for child in psutil.Process().children(recursive=True):
                    with suppress(psutil.NoSuchProcess):
                        # What is left of a start that failed may still be listed, as a zombie.
                        if child.name() in _SERVERS and _is_alive(child):
                            self._servers.append(child)
        except KeyboardInterrupt:
            self.abandon()
            raise
        except BaseException:
            self.close()
            raise

    def _connect(self, address: str | None, common: dict[str, Any]) -> None:
        """Connect in a thread: a signal interrupts the wait for it, and Ray installs no handlers of its own.

        The thread lives until the end, since the kernel ends Ray's servers with the thread that started them.
        """
        connected: Future[None] = Future()

        def connect() -> None:
            try:
                self._join(address, common)
            except BaseException as error:
                connected.set_exception(error)
            else:
                connected.set_result(None)
            self._closed.wait()

        threading.Thread(target=connect, name="ray", daemon=True).start()
        connected.result()

    def _join(self, address: str | None, common: dict[str, Any]) -> None:
        for tries_left in reversed(range(_TRIES)):
            try:
                self._ray.init(address, **common)
                return
            except Exception as error:
                if self._folder is None or self._abandoned:
                    raise
                if not tries_left:
                    raise RuntimeError(_NOT_STARTED) from error
                self._kill_servers()

    def _kill_servers(self) -> None:
        """Kill what a failed start has left: every child with the folder in its command line."""
        killed = []
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                if str(self._folder) in " ".join(process.cmdline()):
                    process.kill()
                    killed.append(process)
        psutil.wait_procs(killed, timeout=_DEATH_TIMEOUT_S)

    def start(self, place: int, process: type, *arguments: Any) -> Any:
        """Create an object in a process of its own, which Ray restarts with the same arguments if it dies.

        Args:
            place: equal numbers mean the same machine while it is alive.
            process: a class.
            arguments: arguments of the class's constructor.

        Returns:
            A Ray handle.
        """
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        node = self._nodes[place % len(self._nodes)]
        options: dict[str, Any] = {
            "num_cpus": _CPUS_PER_PROCESS,
            "max_restarts": -1,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=True),
        }
        return self._ray.remote(**options)(process).remote(*arguments)

    def check_servers(self) -> None:
        """Check that the Ray servers started here run: a minute after one ends, Ray ends this process.

        Raises:
            ChildDiedError: one has ended; Ray is abandoned.
        """
        if self._folder is not None and sum(map(_is_alive, self._servers)) < len(_SERVERS):
            self.abandon()
            # However it ended: as after a kill, the run is queued again.
            raise ChildDiedError("Ray's server", -signal.SIGKILL)

    def abandon(self) -> None:
        """Skip Ray's shutdown when this process exits; the caller exits next.

        For a start that was interrupted, since Ray's shutdown waits for processes that have not started yet,
        and for a lost server, for which it waits for a minute, holding the GIL. What is left of Ray is killed
        after this process.
        """
        self._abandoned = True
        atexit.register(_exit)

    def close(self) -> None:
        """End every process of the run, and Ray if it was started here; nothing if it was abandoned."""
        if self._abandoned:
            return
        with suppress(Exception):
            self._ray.shutdown()
        self._closed.set()
        if self._clean_up_process is not None:
            self._kill_servers()
            with suppress(subprocess.TimeoutExpired):  # it ends by itself
                self._clean_up_process.communicate(timeout=_DEATH_TIMEOUT_S)


def _start_clean_up(folder: Path) -> subprocess.Popen[bytes]:
    """Start a shell that waits for the end of this process, then kills what is left of Ray with the folder.

    The kernel ends Ray's servers with the process that started them, and the other processes end with the
    servers. Ray's two agents would run for a minute or more, until they stop trying to report. All of them
    have a log in the folder open. If the shell is killed too, the next Gorila run removes the folder.
    """
    clean_up = """
        read -r _
        for k in 1 2 3; do
            for process in /proc/[0-9]*; do
                [ "$process" = "/proc/$PPID" ] && continue
                ls -l "$process/fd" 2> /dev/null | grep -qF -- "-> $FOLDER/" && kill -9 "${process#/proc/}"
            done
            rm -rf -- "$FOLDER" && break
            sleep 1
        done
    """
    return subprocess.Popen(
        ["/bin/sh", "-c", clean_up],
        env=os.environ | {"FOLDER": str(folder.resolve())},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # survives a signal to this process's group
    )


def _is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False


def _exit() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _remove_stale_folders() -> None:
    """Remove the folders of engines that were killed."""
    for folder in Path("/tmp").glob("callboard-ray-*"):  # noqa: S108
        match = _FOLDER.match(folder.name)
        if match is None or Path("/proc", match[1]).exists():
            continue
        with suppress(FileNotFoundError):  # another process is removing it
            if folder.stat().st_uid == os.getuid():
                shutil.rmtree(folder, ignore_errors=True)
