"""Runs jobs apart from runs, such as rendering an episode's video or evaluating a checkpoint.

A job runs as a child process like an engine, one at a time per host, next to the runs that train there. What
a kind of job needs, runs and records is declared in its resource (`backend.fleet.jobs.kinds`).
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL
from time import monotonic
from types import MappingProxyType
from typing import TypeVar

import structlog
from sqlalchemy.orm import Session

from backend.coordination.context import TRANSIENT_ERRORS, Context, retry_until_available
from backend.fleet.jobs import service as jobs
from backend.fleet.jobs.kinds import Command, EngineFailed, FileLost, JobFailed, job_kinds
from backend.runs.runs import service as runs
from backend.specs import machine_faults
from workers.engine_process import ENGINE_COMMAND, EngineProcess
from workers.engine_server import EngineServer
from workers.job_files import JobFiles, job_folder

TIMEOUT_S = 3600.0
"""Time after which a job fails."""

_TICK_S = 0.2

log = structlog.get_logger(__name__)
T = TypeVar("T")


@dataclass(frozen=True)
class ClaimedJob:
    """One try at one job."""

    id: str
    run_id: str | None
    kind: str
    target_id: str
    tries: int


class JobKilled(Exception):
    """Its engine was killed, often for the memory that it took: another try may succeed."""


class JobLost(Exception):
    """The job's lease is lost, or the worker is shutting down."""


def claim(
    session: Session,
    host: str,
    lease_s: float,
    environments: Sequence[str],
    *,
    versions: Mapping[str, str] = MappingProxyType({}),
    may_expire: bool = True,
) -> ClaimedJob | None:
    """Claim the next job, as `jobs.service.claim` chooses it."""
    job = jobs.claim(session, host, lease_s, environments, versions=versions, may_expire=may_expire)
    return ClaimedJob(job.id, job.run_id, job.kind, job.target_id, job.tries) if job else None


class JobRunner(threading.Thread):
    """Runs one try at one job."""

    def __init__(
        self,
        context: Context,
        job: ClaimedJob,
        *,
        command: Sequence[str] = ENGINE_COMMAND,
        server: EngineServer | None = None,
        on_end: Callable[[], None] = lambda: None,
        on_disk_fault: Callable[[int], None] = lambda number: None,
    ) -> None:
        super().__init__(name=f"job-{job.id}", daemon=True)
        self._server = server
        self._context = context
        self._job = job
        self._kind = job_kinds()[job.kind]
        self._command = command
        self._on_end = on_end
        self._on_disk_fault = on_disk_fault
        # A job without a run has a folder of its own, named after its target.
        self._owner_id = job.run_id or job.target_id
        self._run_dir = context.run_dir(self._owner_id)
        self._cancelled = threading.Event()
        self._ended = threading.Event()
        self._renew_at = 0.0
        self._deadline = 0.0

    def cancel(self) -> None:
        """Abort because the worker is shutting down; another worker will claim the job."""
        self._cancelled.set()

    def run(self) -> None:
        """Run the job."""
        self._deadline = monotonic() + TIMEOUT_S
        renewal = threading.Thread(target=self._keep_lease, name=f"{self.name}-lease", daemon=True)
        try:
            renewal.start()
        except RuntimeError as error:  # the host has no room for a thread
            log.warning("job.not_started", job=self._job.id, error=str(error))
            self._requeue()
            self._on_end()
            return
        with structlog.contextvars.bound_contextvars(run_id=self._job.run_id, job=self._job.id):
            try:
                write = self._execute()
                self._write(lambda session: self._finish(session, write))
            except JobLost:
                self._requeue()
            except JobKilled:
                log.warning("job.engine_killed", tries=self._job.tries)
                self._requeue(counts=True)
            except Exception as error:
                fault = machine_faults.errno_of(error) if isinstance(error, OSError) else None
                if fault is not None:
                    log.warning("job.disk_failed", error=str(error))
                    self._on_disk_fault(fault)
                    self._requeue()
                    return
                log.exception("job.failed")
                message = str(error) if isinstance(error, JobFailed) else repr(error)
                # If even this cannot be written, the lease expires.
                with suppress(JobLost, JobFailed):
                    self._write(lambda session: jobs.fail(session, self._job.id, self._job.tries, message))
            finally:
                self._ended.set()
                renewal.join()
                self._on_end()

    def _requeue(self, *, counts: bool = False) -> None:
        with suppress(*TRANSIENT_ERRORS), self._context.writing() as session:
            jobs.requeue(session, self._job.id, self._job.tries, counts=counts)

    def _execute(self) -> Callable[[Session], None]:
        """Do the job; return what writes its result, in the transaction that finishes it."""
        kind, target_id = self._kind, self._job.target_id
        needed = self._retry(self._load)
        if needed is None:
            return lambda session: None
        command = kind.command(needed)
        try:
            with job_folder(self._run_dir, self._job.id, is_of_run=self._job.run_id is not None) as folder:
                files = JobFiles(self._context, self._owner_id, folder, self._retry)
                answer = self._wait_for_engine(folder, command, files.arguments(command))
                result = files.result(command, answer)
        except (EngineFailed, FileLost) as error:
            failure, record_failure = error, kind.record_failure
            if record_failure is None:
                raise
            if isinstance(failure, FileLost):  # or is the store not mounted?
                self._retry(lambda: self._context.store.check_has_run(self._owner_id))
            return lambda session: record_failure(session, target_id, failure)
        return lambda session: kind.record(session, target_id, result)

    def _load(self) -> object:
        with self._context.reading() as session:
            return self._kind.load(session, self._context.store, self._job.target_id)

    def _start_engine(self, folder: Path, command: Command, arguments: Sequence[str]) -> EngineProcess:
        # Without a spec it needs little of what the server has loaded, and bounds its memory.
        spec, server = command.spec, self._server
        if spec is None or server is None or server.why_not(getattr(spec, "environment", ""), self._check):
            server = None
        return EngineProcess(
            arguments,
            output=folder / "stderr.log",
            stdout=folder / "stdout.log",
            command=self._command,
            fork=server.fork if server else None,
            niceness=self._context.settings.engine_niceness,
        )

    def _check(self) -> None:
        if self._cancelled.is_set():
            raise JobLost

    def _wait_for_engine(self, folder: Path, command: Command, arguments: Sequence[str]) -> str:
        """Run the engine to its end; return its standard output.

        Raises:
            EngineFailed: it failed; the message is the end of its output.
            JobKilled: it was killed.
            JobLost: the lease is lost, or the worker is shutting down.
        """
        process = self._retry(lambda: self._start_engine(folder, command, arguments))
        try:
            while not process.has_exited():
                process.wait_for_exit(_TICK_S)
                self._check()
                process.bound_output()
                if monotonic() > self._deadline:
                    raise EngineFailed(f"it took longer than {TIMEOUT_S:.0f} s")
        finally:
            status = process.reap()
        if (fault := machine_faults.errno_of_exit_status(status)) is not None:
            raise OSError(fault, machine_faults.describe(fault))
        if status == -SIGKILL and self._job.tries < jobs.MAX_TRIES:
            raise JobKilled
        if status != 0:
            raise EngineFailed(process.output_tail() or f"the engine exited with status {status}")
        return (folder / "stdout.log").read_text()

    def _keep_lease(self) -> None:
        """Renew the lease until the job ends, also while a slow store transfers a file; cancel the job if the
        lease is lost."""
        while not self._ended.wait(_TICK_S):
            try:
                self._renew()
            except JobLost:
                self._cancelled.set()
                return
            except Exception:
                log.exception("job.not_renewed", job=self._job.id)

    def _renew(self) -> None:
        now = monotonic()
        if now < self._renew_at or now > self._deadline:
            return
        self._renew_at = now + self._context.settings.lease_s / 3
        with suppress(*TRANSIENT_ERRORS), self._context.writing() as session:
            if not jobs.renew(session, self._job.id, self._job.tries, self._context.settings.lease_s):
                raise JobLost

    def _finish(self, session: Session, write: Callable[[Session], None]) -> None:
        if jobs.finish(session, self._job.id, self._job.tries):
            write(session)
            if self._job.run_id is not None:
                # Who waits for a thumbnail follows its job: nothing else has to be fetched again.
                runs.bump_revision(
                    session, self._job.run_id, [] if self._kind.changes_run else ["thumbnails"]
                )

    def _write(self, action: Callable[[Session], object]) -> None:
        def write() -> None:
            with self._context.writing() as session:
                action(session)

        self._retry(write)

    def _retry(self, action: Callable[[], T]) -> T:
        """Retry an action while the database or the artifact store is unavailable, or the host lacks memory,
        processes or open files for it.

        Raises:
            JobFailed: they were unavailable for too long.
            JobLost: the lease is lost, or the worker is shutting down.
            OSError: this host's disk is full or broken; another host may take the job.
        """

        def wait(error: Exception) -> None:
            if isinstance(error, FileNotFoundError):
                raise error
            if isinstance(error, OSError) and machine_faults.errno_of(error) is not None:
                raise error
            log.warning("job.waiting", error=str(error)[:500])
            if monotonic() > self._deadline:
                raise JobFailed(f"it took longer than {TIMEOUT_S:.0f} s: {error}") from error
            if self._cancelled.wait(1.0):
                raise JobLost from None

        return retry_until_available(action, wait)
