"""Small work besides runs: drawing an episode's video, scoring a checkpoint.

A job runs as a child process like an engine, one at a time on a host, beside whatever trains there.
"""

import json
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TypeVar

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.db import Checkpoint, Episode, Evaluation, Run
from backend.episodes import repository as episodes
from backend.jobs import repository as jobs
from backend.runs import repository as runs
from workers import resume
from workers.context import AWAY, Context
from workers.engine_process import ENGINE, EngineProcess
from workers.text import storable

LIMIT_S = 3600.0
"""A job that takes longer has failed."""

_TICK_S = 0.2

log = structlog.get_logger(__name__)
T = TypeVar("T")

Result = Callable[[Session], None]
"""Writes what a job has brought, in the transaction that ends it."""


@dataclass(frozen=True)
class ClaimedJob:
    """One try at one job."""

    id: str
    run_id: str
    kind: str
    target_id: str
    tries: int


class JobFailed(Exception):
    """The job cannot be done; the message is for whoever asked for it."""


class Dropped(Exception):
    """The try holds the job no more, or the worker shuts down."""


def claim(session: Session, host: str, lease_s: float, environments: Sequence[str]) -> ClaimedJob | None:
    """Claim the oldest job there is to do in one of these worlds."""
    job = jobs.claim(session, host, lease_s, environments)
    return ClaimedJob(job.id, job.run_id, job.kind, job.target_id, job.tries) if job else None


class JobRunner(threading.Thread):
    """Sees one try at one job through."""

    def __init__(
        self,
        context: Context,
        job: ClaimedJob,
        *,
        engine: Sequence[str] = ENGINE,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(name=f"job-{job.id}", daemon=True)
        self._context = context
        self._job = job
        self._engine = engine
        self._on_end = on_end
        self._run_dir = context.run_dir(job.run_id)
        self._cancelled = threading.Event()
        self._renew_at = 0.0
        self._ends_at = 0.0

    def cancel(self) -> None:
        """The worker shuts down: drop the work; another worker takes it up."""
        self._cancelled.set()

    def run(self) -> None:
        """Do the job."""
        self._ends_at = monotonic() + LIMIT_S
        with structlog.contextvars.bound_contextvars(run_id=self._job.run_id, job=self._job.id):
            try:
                write = self._work()
                self._write(lambda session: self._keep(session, write))
            except Dropped:
                with suppress(*AWAY), self._context.writing() as session:
                    jobs.hand_back(session, self._job.id, self._job.tries)
            except Exception as error:
                log.exception("job.failed")
                message = storable(str(error) if isinstance(error, JobFailed) else repr(error))
                # Where even this cannot be told, the lease runs out.
                with suppress(Dropped, JobFailed):
                    self._write(lambda session: jobs.fail(session, self._job.id, self._job.tries, message))
            finally:
                self._on_end()

    def _work(self) -> Result:
        run, episode, evaluation = self._insist(self._find)
        if run is None or (episode is None and evaluation is None):
            raise JobFailed("what it was for has been deleted")
        if episode is not None:
            return self._draw(run, episode)
        assert evaluation is not None
        return self._score(run, evaluation)

    def _find(self) -> tuple[Run | None, Episode | None, Evaluation | None]:
        job = self._job
        with self._context.reading() as session:
            run = runs.get(session, job.run_id)
            episode = session.get(Episode, job.target_id) if job.kind == "video" else None
            evaluation = session.get(Evaluation, job.target_id) if job.kind == "evaluation" else None
        return run, episode, evaluation

    def _draw(self, run: Run, episode: Episode) -> Result:
        replay = self._run_dir / "replays" / episode.replay
        if not replay.is_file():
            get = partial(self._context.store.get, episode.run_id, "replays", episode.replay, replay.parent)
            try:
                self._insist(get)
            except FileNotFoundError:
                raise JobFailed(f"the replay {episode.replay} is gone") from None
        video = self._run_dir / "videos" / f"{episode.id}.mp4"
        video.parent.mkdir(parents=True, exist_ok=True)
        observed = video.with_name(episodes.observations_file(episode.id))
        options = ("--replay", str(replay), "--out", str(video), "--observed", str(observed))
        self._run_engine(run, "video", *options)
        for drawn in (observed, video):
            if drawn.is_file():
                self._insist(partial(self._context.store.put, drawn, episode.run_id, "videos"))
                drawn.unlink()

        def write(session: Session) -> None:
            session.get_one(Episode, episode.id).video = video.name

        return write

    def _score(self, run: Run, evaluation: Evaluation) -> Result:
        checkpoint = self._insist(partial(self._checkpoint, evaluation))
        if checkpoint is None:
            raise JobFailed(f"the checkpoint {evaluation.checkpoint} is gone or damaged")
        file = self._run_dir / "checkpoints" / checkpoint.file
        options = ["--checkpoint", str(file), "--episodes", str(evaluation.n_episodes)]
        result = json.loads(self._run_engine(run, "evaluate", *options, "--seed", str(evaluation.seed)))

        def write(session: Session) -> None:
            row = session.get_one(Evaluation, evaluation.id)
            row.returns = result["returns"]
            row.lengths_frames = result["lengths_frames"]
            row.mean_return = result["mean_return"]

        return write

    def _checkpoint(self, evaluation: Evaluation) -> Checkpoint | None:
        """What is to be scored, its file on this host; none unless intact."""
        with self._context.reading() as session:
            checkpoint = session.scalars(
                select(Checkpoint)
                .where(Checkpoint.run_id == evaluation.run_id, Checkpoint.file == evaluation.checkpoint)
                .order_by(Checkpoint.id.desc())
            ).first()
        if checkpoint is None or resume.fetch(self._context, checkpoint) is None:
            return None
        return checkpoint

    def _run_engine(self, run: Run, task: str, *options: str) -> str:
        """Run the engine to its end, holding the lease meanwhile; gives what it printed.

        It works in a folder of its own: the run's spec is its training's, and may change meanwhile.

        Raises:
            JobFailed: it failed, with the end of its output.
            Dropped: the lease is lost, or the worker shuts down.
        """
        parent = self._run_dir / "jobs"
        parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f"{self._job.id}-", dir=parent) as folder:
            resume.write_spec(Path(folder), run.spec)
            return self._await_engine(Path(folder), task, options)

    def _await_engine(self, folder: Path, task: str, options: Sequence[str]) -> str:
        printed = folder / "stdout.log"
        engine = EngineProcess(
            [task, str(folder), *options],
            output=folder / "stderr.log",
            stdout=printed,
            engine=self._engine,
        )
        try:
            while not engine.has_ended():
                if self._cancelled.wait(_TICK_S):
                    raise Dropped
                if monotonic() > self._ends_at:
                    raise JobFailed(f"it took longer than {LIMIT_S:.0f} s")
                self._renew()
        finally:
            status = engine.reap()
        if status != 0:
            raise JobFailed(engine.output_tail() or f"the engine ended with exit status {status}")
        return printed.read_text()

    def _renew(self) -> None:
        now = monotonic()
        if now < self._renew_at:
            return
        self._renew_at = now + self._context.settings.lease_s / 3
        with suppress(*AWAY), self._context.writing() as session:
            if not jobs.renew(session, self._job.id, self._job.tries, self._context.settings.lease_s):
                raise Dropped

    def _keep(self, session: Session, write: Result) -> None:
        if jobs.finish(session, self._job.id, self._job.tries):
            write(session)
            runs.bump_revision(session, self._job.run_id)

    def _write(self, action: Callable[[Session], object]) -> None:
        def write() -> None:
            with self._context.writing() as session:
                action(session)

        self._insist(write)

    def _insist(self, action: Callable[[], T]) -> T:
        """Do something that may have to wait for the database or the artifact store, holding the lease.

        Raises:
            JobFailed: they were away for too long.
            Dropped: the lease is lost, or the worker shuts down.
        """
        while True:
            try:
                return action()
            except FileNotFoundError:
                raise
            except AWAY as error:
                log.warning("job.waits", error=str(error)[:500])
                if monotonic() > self._ends_at:
                    raise JobFailed(f"it took longer than {LIMIT_S:.0f} s: {error}") from error
                if self._cancelled.wait(1.0):
                    raise Dropped from None
                self._renew()
