"""The host agent: heartbeats, leases and claims.

One thread does all of this every few seconds, or immediately when woken. The database is the truth: a lost or
repeated wake-up changes nothing.
"""

import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any

import structlog

from backend.coordination import claims
from backend.coordination.alerting import AlertDelivery, Alerting
from backend.coordination.context import TRANSIENT_ERRORS, Context
from backend.coordination.lease_expiry import DatabaseLiveness, expire, since_boot_s
from backend.coordination.reconciler import Reconciler
from backend.db.clock import database_now
from backend.fleet.hosts import service as hosts
from backend.runs.live_settings import service as live_settings
from backend.runs.runs import service as runs
from backend.specs.algorithms.memory import ENGINE_BYTES
from backend.specs.environments.installed import installed_environments
from backend.specs.host_commands import read_commands
from backend.specs.states import LEASED
from workers import host_facts, jobs
from workers.clean_up import CleanUpThread
from workers.command_run import CommandSupervisor
from workers.disk import Disk
from workers.engine_process import ENGINE_COMMAND
from workers.engine_server import EngineServer, EngineServerError
from workers.gameplay import Gameplay
from workers.jobs import JobRunner
from workers.play import PlaySessions
from workers.supervisor import Supervisor

log = structlog.get_logger(__name__)


class NameTaken(Exception):
    """A worker of another home directory runs under this host's name."""


class HostAgent:
    """Runs a worker process's supervisors and jobs. `start` it once, `stop` it once.

    Args:
        context: the worker's context.
        command: the engine's command.
        execute: executes a claimed attempt and returns immediately; by default in a thread of its own.
    """

    def __init__(
        self,
        context: Context,
        *,
        command: Sequence[str] = ENGINE_COMMAND,
        execute: Callable[[Supervisor], None] = Supervisor.start,
    ) -> None:
        self._context = context
        self._settings = context.settings
        self._command = command
        self._host = context.settings.host_name
        self.liveness = DatabaseLiveness(context.settings.lease_s)
        self._gpus = host_facts.Gpus()
        self._load = host_facts.Load(self._gpus)
        slots = context.settings.slots
        self.slots = max(1, len(self._gpus.devices)) if slots is None else slots
        """Maximum number of runs that it trains at the same time."""
        self._disk = Disk(context.settings.runs_dir, context.settings.min_free_disk_bytes)
        self._disk_problem: str | None = None
        installed = installed_environments(context.settings.environments_file)
        custom = [entry.describe() for entry in installed.values.values()]
        names = list(installed.values)
        refused = host_facts.refused_environments(context.settings.environments_file, names)
        for name, reason in refused.items():
            log.warning("environment.refused", environment=name, reason=reason)
        self._package_problems = installed.problems | host_facts.refused_packages()
        for package, reason in self._package_problems.items():
            log.warning("package.refused", package=package, reason=reason)
        file = context.settings.commands_file
        self._commands = {} if file is None else read_commands(file)
        self._facts: dict[str, Any] = {
            "commands": [entry.describe().model_dump(mode="json") for entry in self._commands.values()],
            "queues": self._settings.queues,
            "slots": self.slots,
            "cpu_count": host_facts.cpu_count(),
            "memory_bytes": host_facts.memory_bytes(),
            "devices": [host_facts.cpu_device(), *self._gpus.devices],
            "environments": [
                *host_facts.environments(),
                *(env.id for env in custom if env.id not in refused),
            ],
            "custom_environments": [
                env.model_dump(mode="json") | ({"refusal": refused[env.id]} if env.id in refused else {})
                for env in custom
            ],
            "versions": host_facts.versions(
                self._package_problems, (env.package for env in custom if env.id not in refused)
            ),
            "worker_id": host_facts.worker_id(context.settings.home_dir),
        }
        self._name_taken = False
        # Other commands fork nothing.
        can_fork = sys.platform == "linux" and command == ENGINE_COMMAND
        self._server = EngineServer() if can_fork else None
        self._forks_all = self._server is not None and not self._gpus.devices and not custom
        """Whether it starts no engine as a process of its own."""
        # Evaluations and agents of games may use a GPU too.
        self._server_of_jobs = None if self._gpus.devices else self._server
        self._gameplay = Gameplay(context.settings.redis)
        self._play = PlaySessions(
            context,
            self._gameplay,
            self._facts["environments"],
            command=command,
            server=self._server_of_jobs,
            on_end=self.wake,
        )
        self._execute = execute
        self._claimed: list[Supervisor] = []
        self._revoked: deque[tuple[str, int, bool]] = deque()
        self._job: JobRunner | None = None
        self._clean_up = CleanUpThread(context)
        self._periodic = (Reconciler(context), Alerting(context), AlertDelivery(context))
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._stopping_since: float | None = None
        self._thread = threading.Thread(target=self._run, name="host-agent", daemon=True)

    def start(self) -> None:
        """Start the agent's thread."""
        if self._server is not None:
            # Now, so that the first run or game waits less for it.
            with suppress(EngineServerError, OSError):
                self._server.is_ready(0.0)
        self._gameplay.start()
        self._play.start()
        self._clean_up.start()
        for thread in self._periodic:
            thread.start()
        self._thread.start()

    def wake(self) -> None:
        """Check for work now."""
        self._wake.set()

    def revoke(self, run_id: str, attempt: int, *, kill: bool) -> None:
        """Request a stop or a kill of a run on behalf of Celery's `revoke`; returns immediately."""
        self._revoked.append((run_id, attempt, kill))
        self.wake()

    def begin_stop(self) -> None:
        """Claim nothing more, and have every engine save a checkpoint and exit; returns immediately."""
        if self._stopping_since is None:
            self._stopping_since = monotonic()
        self._stopping.set()
        self._play.begin_stop()
        self._gameplay.begin_stop()
        self._clean_up.begin_stop()
        for thread in self._periodic:
            thread.begin_stop()
        self._release_all()
        self._wake.set()

    def stop(self, timeout_s: float) -> bool:
        """Stop all; kill engines still running `timeout_s` after `begin_stop`.

        Returns whether all runs and the job ended in time.
        """
        self.begin_stop()
        assert self._stopping_since is not None
        deadline = self._stopping_since + timeout_s
        self._thread.join(max(0.0, deadline - monotonic()))
        threads: list[Supervisor | JobRunner] = [*self._supervisors()]
        if self._job is not None:
            threads.append(self._job)
        for thread in threads:
            thread.join(max(0.0, deadline - monotonic()))
        late = [thread for thread in threads if thread.is_alive()]
        for thread in late:
            if isinstance(thread, Supervisor):
                thread.kill()
        self._play.stop(max(0.0, deadline - monotonic()))
        self._gameplay.stop(max(0.0, deadline - monotonic()))
        self._clean_up.join(max(0.0, deadline - monotonic()))
        for periodic in self._periodic:
            periodic.join(max(0.0, deadline - monotonic()))
        if self._server is not None:
            self._server.stop()
        if not late and not self._thread.is_alive():
            # In a thread: a database that does not answer must not delay the exit.
            record = threading.Thread(target=self._record_stop, name="record-stop", daemon=True)
            record.start()
            record.join(max(0.0, deadline - monotonic()))
        return not late

    def _record_stop(self) -> None:
        try:
            with self._context.writing() as session:
                hosts.record_stop(session, self._host, self._facts["worker_id"])
        except TRANSIENT_ERRORS as error:
            log.warning("host.stop_not_recorded", error=str(error)[:500])

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._reconcile()
                self._name_taken = False
            except NameTaken:
                self._report_taken_name()
            except TRANSIENT_ERRORS as error:
                log.warning("database.unavailable", error=str(error)[:500])
            except Exception:
                # After any error, leases must still be renewed.
                log.exception("agent.error")
            self._wake.wait(self._settings.reconcile_interval_s)
            self._wake.clear()
        # Again: a run may have been claimed meanwhile.
        self._release_all()

    def _report_taken_name(self) -> None:
        """Log once that another worker has the name, which it may take after an outage of the database.

        This worker's runs end without a checkpoint, since the other worker may hold them by now. It claims
        none until the other is gone.
        """
        for supervisor in self._supervisors():
            supervisor.supersede()
        if not self._name_taken:
            self._name_taken = True
            log.error(
                "host.name_taken",
                host=self._host,
                hint="a worker of another home runs under this name: set CALLBOARD_HOST_NAME to another one",
            )

    def _supervisors(self) -> list[Supervisor]:
        """The supervisors of all attempts that are not over, oldest claim first."""
        return [supervisor for supervisor in self._claimed if supervisor.is_alive()]

    def _release_all(self) -> None:
        for supervisor in self._supervisors():
            supervisor.requeue_for_shutdown()
        if self._job is not None:
            self._job.cancel()

    def _reconcile(self) -> None:
        self._stop_revoked()
        draining = self._renew()
        self.liveness.record_success(since_boot_s())
        if self.liveness.may_expire():
            expire(self._context)
        claims_nothing = draining or self._disk_problem is not None
        self._play.reconcile(claims=not claims_nothing)
        if claims_nothing:
            return
        renew_at = monotonic() + self._settings.lease_s / 3
        while len(self._supervisors()) < self.slots and not self._stopping.is_set():
            if not self._claim():
                break
            if monotonic() > renew_at:  # many slots are to be filled: the leases of those before come first
                self.wake()
                break
        if (self._job is None or not self._job.is_alive()) and not self._stopping.is_set():
            self._claim_job()

    def _renew(self) -> bool:
        """Send the heartbeat and renew this host's leases; return whether the host is draining.

        Raises:
            NameTaken: another worker has the name; nothing is changed.
        """
        # A run lost and claimed again may briefly have two supervisors; the newest comes last.
        supervisors = self._supervisors()
        held = {supervisor.claim.run_id: supervisor.claim.attempt for supervisor in supervisors}
        disk = self._disk.read()
        if disk["disk_problem"] != self._disk_problem:
            self._disk_problem = disk["disk_problem"]
            log.warning("disk.problem", problem=self._disk_problem, free_bytes=disk["disk_free_bytes"])
        if self._disk.is_filling(disk["disk_free_bytes"]):
            self._clean_up.run_now()
        lag_s = max((supervisor.recorder_lag_s() for supervisor in supervisors), default=0.0)
        load = self._load.read() | disk | {"recorder_lag_s": round(lag_s, 3)}
        load["package_problems"] = self._package_problems
        load["claimable_memory_bytes"] = max(0, self._free_memory_bytes())
        with self._context.writing() as session:
            row = hosts.find(session, self._host, for_update=True)
            now = database_now(session)
            if hosts.is_taken(row, self._facts["worker_id"], now, self._settings.lease_s):
                raise NameTaken
            host = hosts.record_heartbeat(session, self._host, **self._facts, load=load)
            requests = claims.renew(session, self._host, held, self._settings.lease_s)
            settings = {run_id: live_settings.pending_commands(session, run_id) for run_id in requests}
            checkpoints = runs.wanted_checkpoints(session, requests)
        for supervisor in supervisors:
            run_id = supervisor.claim.run_id
            if run_id in requests and supervisor.claim.attempt == held[run_id]:
                supervisor.request(requests[run_id], settings[run_id], checkpoints.get(run_id))
            else:
                supervisor.supersede()
        return host.draining

    def _stop_revoked(self) -> None:
        while self._revoked:
            run_id, attempt, kill = self._revoked[0]
            with self._context.writing() as session:
                run = runs.find(session, run_id, for_update=True)
                if run is not None and run.attempt == attempt and run.state in LEASED:
                    runs.request_stop(session, run, kill=kill, by=" by Celery's revoke")
            self._revoked.popleft()

    def _claim(self) -> bool:
        free_memory_bytes = self._free_memory_bytes()
        with self._context.writing() as session:
            claim = claims.claim(
                session,
                self._host,
                queues=self._settings.queues,
                free_memory_bytes=free_memory_bytes,
                lease_s=self._settings.lease_s,
            )
        if claim is None:
            return False
        in_use = [supervisor.gpu for supervisor in self._supervisors()]
        gpu = self._gpus.choose(in_use) if claim.may_use_gpu else None
        log.info("run.claimed", run_id=claim.run_id, attempt=claim.attempt, gpu=gpu)
        of_claim = partial(CommandSupervisor, commands=self._commands) if claim.is_command else Supervisor
        supervisor = of_claim(
            self._context,
            claim,
            gameplay=self._gameplay,
            command=self._command,
            server=self._server,
            may_use_gpu=claim.may_use_gpu and bool(self._gpus.devices),
            gpu=gpu,
            on_end=self.wake,
            on_disk_fault=self._disk.record_fault,
        )
        self._claimed = [*self._supervisors(), supervisor]
        self._execute(supervisor)
        return True

    def _free_memory_bytes(self) -> int:
        """Memory left for the estimate of a run, once every engine has grown to its own.

        Engines that are forked share what their server has loaded, which each estimate includes.
        """
        available = host_facts.available_memory_bytes()
        engines = [
            (supervisor.claim.memory_estimate_bytes, supervisor.memory_bytes())
            for supervisor in self._supervisors()
        ]
        if not self._forks_all:
            return available - sum(max(0, estimate - used) for estimate, used in engines)
        assert self._server is not None
        expected = ENGINE_BYTES + sum(estimate - ENGINE_BYTES for estimate, _ in engines)
        used = self._server.memory_bytes() + sum(used for _, used in engines)
        return available + ENGINE_BYTES - max(0, expected - used)

    def _claim_job(self) -> None:
        with self._context.writing() as session:
            job = jobs.claim(
                session,
                self._host,
                self._settings.lease_s,
                self._facts["environments"],
                versions=self._facts["versions"],
                may_expire=self.liveness.may_expire(),
            )
        if job is not None:
            log.info("job.claimed", run_id=job.run_id, job=job.id, kind=job.kind)
            self._job = JobRunner(
                self._context,
                job,
                command=self._command,
                server=self._server_of_jobs,
                on_end=self.wake,
                on_disk_fault=self._disk.record_fault,
            )
            self._job.start()
