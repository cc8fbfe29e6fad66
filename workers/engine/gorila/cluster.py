"""The Ray that hosts a run's parts: one of its own on this machine, or the one at `CALLBOARD_RAY_ADDRESS`.

Ray is imported here and in `workers.engine.gorila.links`, by none but Gorila's processes.
"""

import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

ADDRESS = "CALLBOARD_RAY_ADDRESS"
_FOLDER = re.compile(r"callboard-ray-(\d+)-")
_AGENTS = ("ray::DashboardAgent", "ray::RuntimeEnvAgent")
_SHARE_OF_A_CPU = 0.0001
"""What a host asks of its machine, Ray's least: one that asks for nothing is begun on any machine."""
_START_TIMEOUTS = ("RAY_raylet_start_wait_time_s", "RAY_gcs_server_port_wait_time_s")
_START_TIMEOUT_S = 60
"""How long each of Ray's two servers may take: a starved machine misses Ray's own 30 s."""
_TRIES = 3
"""How often a Ray is begun: its server dies where its agents take more than 15 s, which cannot be set."""
_MIN_STORE_BYTES = 80 * 2**20
"""Ray takes no smaller object store."""


class RayCluster:
    """A connection to Ray; hosts are made by `start`."""

    def __init__(self, store_bytes: int) -> None:
        """Connect, or begin a Ray without dashboard or usage statistics, on the loopback interface.

        Args:
            store_bytes: the object store's bound, where one is begun.

        Raises:
            ConnectionError: there is none at `CALLBOARD_RAY_ADDRESS`.
        """
        self._folder: Path | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        address = os.environ.get(ADDRESS)
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        # What Ray says of its own to this process's standard output is told in other words in the run's log.
        os.environ["RAY_DEDUP_LOGS_SKIP_REGEX"] = "."
        if address is None:
            for name in _START_TIMEOUTS:
                os.environ.setdefault(name, str(_START_TIMEOUT_S))
            _remove_folders_of_the_dead()
            # Sockets lie in it: their paths must be short.
            self._folder = Path(tempfile.mkdtemp(prefix=f"callboard-ray-{os.getpid()}-", dir="/tmp"))
            # Despite its name it binds every service to 127.0.0.1.
            os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
            # Other people on this machine are kept out by a token that only these processes know.
            os.environ["RAY_AUTH_MODE"] = "token"
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        import ray

        self._ray: Any = ray
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
        polite_stop = signal.getsignal(signal.SIGTERM)
        try:
            self._join(address, common)
            self._nodes = [node["NodeID"] for node in self._ray.nodes() if node["Alive"]]
        except BaseException:
            self.close()
            raise
        finally:
            # Ray would have SIGTERM end this process at once.
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, polite_stop)

    def _join(self, address: str | None, common: dict[str, Any]) -> None:
        for tries_left in reversed(range(_TRIES)):
            try:
                self._ray.init(address, **common)
                return
            except Exception:
                if self._folder is None or not tries_left:
                    raise
                self._end_servers()

    def _end_servers(self) -> None:
        """End what a start that failed has left: all that has the folder in its command line."""
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                if str(self._folder) in " ".join(process.cmdline()):
                    process.kill()

    def start(self, place: int, host: type, *arguments: Any) -> Any:
        """A handle to a host in a process of its own, which Ray begins anew with its arguments if it dies.

        Args:
            place: the same number means the same machine, as long as that lives.
            host: a class.
            arguments: of its constructor.
        """
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        node = self._nodes[place % len(self._nodes)]
        options: dict[str, Any] = {
            "num_cpus": _SHARE_OF_A_CPU,
            "max_restarts": -1,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=True),
        }
        return self._ray.remote(**options)(host).remote(*arguments)

    def guard(self) -> None:
        """Have a shell wait for this process's end, however it comes, and clean up; call it once all is up.

        The kernel ends Ray's servers with the process that began them, and the hosts with the servers. Ray's
        two agents would go on for a minute or more, until they have given up telling someone.
        """
        if self._folder is None:
            return
        agents = [
            str(process.pid)
            for process in psutil.Process().children(recursive=True)
            # A dead one that nobody has waited for yet has no command line.
            if " ".join(process.as_dict(["cmdline"])["cmdline"] or ()).startswith(_AGENTS)
        ]
        clean_up = 'read -r _; kill -9 "$@"; rm -rf -- "$0"'
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", clean_up, str(self._folder), *agents],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # who kills this process's group does not mean it
        )

    def close(self) -> None:
        """End every process of it, or of this run on another's Ray."""
        with suppress(Exception):
            self._ray.shutdown()
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()
        if self._folder is not None:
            self._end_servers()
            shutil.rmtree(self._folder, ignore_errors=True)


def _remove_folders_of_the_dead() -> None:
    """A killed engine's Ray dies with it, but leaves its folder."""
    for folder in Path("/tmp").glob("callboard-ray-*"):  # noqa: S108
        found = _FOLDER.match(folder.name)
        if found and folder.stat().st_uid == os.getuid() and not Path("/proc", found[1]).exists():
            shutil.rmtree(folder, ignore_errors=True)
