"""What a worker host does by itself: say that it is there, keep its leases, take back dead ones, claim work.

One thread does all of this every few seconds, or at once when poked. The database is the truth: a poke that
is lost or doubled changes nothing.
"""

import threading
from collections.abc import Sequence
from time import monotonic
from typing import Any

import structlog

from backend.hosts import repository as hosts
from backend.live_settings import repository as live_settings
from backend.specs.commands import Settings
from workers import claims, host_facts, jobs
from workers.context import AWAY, Context
from workers.engine_process import ENGINE
from workers.gameplay import Gameplay
from workers.housekeeping import forget_deleted_runs
from workers.jobs import JobRunner
from workers.supervisor import Supervisor

TIDY_INTERVAL_S = 600.0

log = structlog.get_logger(__name__)


class Contact:
    """Whether this host may judge leases: after the database was away, all get one full term of grace.

    While nobody could renew, leases ran out that nobody let lapse.
    """

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._since = 0.0
        self._latest: float | None = None

    def made(self, now: float) -> None:
        """The database has answered at `now`, by a monotonic clock."""
        if self._latest is None or now - self._latest > self._lease_s / 2:
            self._since = now
        self._latest = now

    def may_expire(self) -> bool:
        """Whether contact has held for a whole term."""
        return self._latest is not None and self._latest - self._since >= self._lease_s


class HostAgent:
    """The heart of a worker process. `start` it once, `stop` it once.

    Args:
        context: the worker's.
        engine: the engine's command.
    """

    def __init__(self, context: Context, *, engine: Sequence[str] = ENGINE) -> None:
        self._context = context
        self._settings = context.settings
        self._engine = engine
        self._host = context.settings.host_name
        self._contact = Contact(context.settings.lease_s)
        gpus = host_facts.Gpus()
        self._load = host_facts.Load(gpus)
        own = host_facts.own_environments(context.settings.environments_file)
        self._facts: dict[str, Any] = {
            "queues": self._settings.queues,
            "slots": self._settings.slots,
            "cpu_count": host_facts.cpu_count(),
            "memory_bytes": host_facts.memory_bytes(),
            "devices": ["cpu", *gpus.names],
            "environments": [*host_facts.environments(), *(world.id for world in own)],
            "own_environments": [world.model_dump(mode="json") for world in own],
            "versions": host_facts.versions(),
        }
        self._gameplay = Gameplay(context.settings.redis)
        self._supervisors: list[Supervisor] = []
        self._job: JobRunner | None = None
        self._tidy_at = 0.0
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._stopping_since: float | None = None
        self._thread = threading.Thread(target=self._live, name="host-agent", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._gameplay.start()
        self._thread.start()

    def poke(self) -> None:
        """Look for work now."""
        self._wake.set()

    def begin_stop(self) -> None:
        """Take nothing new, and have every engine save a checkpoint and end. Returns at once."""
        if self._stopping_since is None:
            self._stopping_since = monotonic()
        self._stopping.set()
        self._gameplay.begin_stop()
        self._hand_back()
        self._wake.set()

    def stop(self, timeout_s: float) -> bool:
        """Stop all; kill what is left `timeout_s` after `begin_stop`, or after this where it comes first.

        Says whether everything was handed back in time.
        """
        self.begin_stop()
        assert self._stopping_since is not None
        ends_at = self._stopping_since + timeout_s
        self._thread.join(max(0.0, ends_at - monotonic()))
        threads: list[Supervisor | JobRunner] = [*self._supervisors]
        if self._job is not None:
            threads.append(self._job)
        for thread in threads:
            thread.join(max(0.0, ends_at - monotonic()))
        late = [thread for thread in threads if thread.is_alive()]
        for thread in late:
            if isinstance(thread, Supervisor):
                thread.kill()
        self._gameplay.stop(max(0.0, ends_at - monotonic()))
        return not late

    def _live(self) -> None:
        while not self._stopping.is_set():
            try:
                self._round()
            except AWAY as error:
                log.warning("database.away", error=str(error)[:500])
            except Exception:
                # Whatever it was, leases must go on being renewed.
                log.exception("agent.error")
            self._wake.wait(self._settings.reconcile_interval_s)
            self._wake.clear()
        # Once more: something may have been claimed just now.
        self._hand_back()

    def _hand_back(self) -> None:
        for supervisor in self._supervisors:
            supervisor.hand_back()
        if self._job is not None:
            self._job.cancel()

    def _round(self) -> None:
        self._supervisors = [supervisor for supervisor in self._supervisors if supervisor.is_alive()]
        draining = self._renew()
        self._contact.made(monotonic())
        if self._contact.may_expire():
            with self._context.writing() as session:
                expired = claims.expire(session)
            for run_id in expired:
                log.warning("run.lost", run_id=run_id)
        if monotonic() >= self._tidy_at:
            forget_deleted_runs(self._context)
            self._tidy_at = monotonic() + TIDY_INTERVAL_S
        if draining:
            return
        while len(self._supervisors) < self._settings.slots and not self._stopping.is_set():
            if not self._claim():
                break
        if (self._job is None or not self._job.is_alive()) and not self._stopping.is_set():
            self._claim_job()

    def _renew(self) -> bool:
        """Say that this host is there, and hold what it holds. Gives whether it is to take nothing new."""
        # A run lost and won again may have two for a moment; the newest comes last.
        held = {supervisor.claim.run_id: supervisor.claim.attempt for supervisor in self._supervisors}
        load = self._load.read()
        with self._context.writing() as session:
            host = hosts.announce(session, self._host, **self._facts, load=load)
            wishes = claims.renew(session, self._host, held, self._settings.lease_s)
            settings = {run_id: live_settings.pending(session, run_id) for run_id in wishes}
        for supervisor in self._supervisors:
            run_id = supervisor.claim.run_id
            if run_id in wishes and supervisor.claim.attempt == held[run_id]:
                asked = [Settings(version=row.version, changes=row.changes) for row in settings[run_id]]
                supervisor.tell(wishes[run_id], asked)
            else:
                supervisor.lose()
        return host.draining

    def _claim(self) -> bool:
        free_memory_bytes = self._free_memory_bytes()
        with self._context.writing() as session:
            won = claims.claim(
                session,
                self._host,
                queues=self._settings.queues,
                free_memory_bytes=free_memory_bytes,
                lease_s=self._settings.lease_s,
            )
        if won is None:
            return False
        log.info("run.claimed", run_id=won.run_id, attempt=won.attempt)
        supervisor = Supervisor(
            self._context, won, gameplay=self._gameplay, engine=self._engine, on_end=self.poke
        )
        self._supervisors.append(supervisor)
        supervisor.start()
        return True

    def _free_memory_bytes(self) -> int:
        """What will be left when every engine has grown to its estimate."""
        promised = sum(
            max(0, supervisor.claim.memory_estimate_bytes - supervisor.rss_bytes())
            for supervisor in self._supervisors
        )
        return host_facts.available_memory_bytes() - promised

    def _claim_job(self) -> None:
        with self._context.writing() as session:
            job = jobs.claim(session, self._host, self._settings.lease_s, self._facts["environments"])
        if job is not None:
            log.info("job.claimed", run_id=job.run_id, job=job.id, kind=job.kind)
            self._job = JobRunner(self._context, job, engine=self._engine, on_end=self.poke)
            self._job.start()
