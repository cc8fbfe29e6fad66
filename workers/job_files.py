"""The files of one job: what its engine reads, fetched or written into a folder, and what it has written."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, TypeVar

from backend.coordination.context import Context
from backend.fleet.jobs.kinds import Command, FileLost, Output, OutputFile, Result, Stored, Written
from workers import resume
from workers.engine.files import file_sha256

T = TypeVar("T")


class Retry(Protocol):
    """Repeats an action while the artifact store is unavailable."""

    def __call__(self, action: Callable[[], T]) -> T:
        """Return the result of the action."""


class JobFiles:
    """The files of a job.

    Args:
        context: the worker's.
        owner_id: the job's run, or its target if it has none, which owns the stored outputs.
        folder: where the engine works. Not the run's, whose spec and checkpoints belong to its training.
        retry: repeats an action while the artifact store is unavailable.
    """

    def __init__(self, context: Context, owner_id: str, folder: Path, retry: Retry) -> None:
        self._context = context
        self._owner_id = owner_id
        self._folder = folder
        self._retry = retry

    def arguments(self, command: Command) -> list[str]:
        """Provide the files that a command reads; return the engine's arguments.

        Raises:
            FileLost: a file without which the job cannot be done is missing or damaged.
        """
        if command.spec is not None:
            (self._folder / "spec.json").write_text(command.spec.model_dump_json(indent=2))
        given: dict[str, str] = {}
        for option, value in command.options.items():
            if isinstance(value, Stored) and (value.unless in given or not self._fetch(value)):
                continue
            if isinstance(value, Written):
                (self._folder / value.name).write_bytes(value.content)
            given[option] = value if isinstance(value, str) else str(self._folder / value.name)
        return [command.subcommand, str(self._folder), *(text for pair in given.items() for text in pair)]

    def result(self, command: Command, answer: str) -> Result:
        """Store what the engine has written, and return its result."""
        written = {
            option: value
            for option, value in command.options.items()
            if isinstance(value, Output) and (self._folder / value.name).is_file()
        }
        return Result(answer, {option: self._keep(output) for option, output in written.items()})

    def _fetch(self, stored: Stored) -> bool:
        """Fetch a file of the artifact store; return whether it is intact."""
        fetch = partial(resume.fetch_into, self._context, stored.owner_id, stored.kind, stored.name)
        is_intact = self._retry(partial(fetch, stored.sha256, self._folder))
        if not is_intact and stored.title is not None:
            raise FileLost(stored.title)
        return is_intact

    def _keep(self, output: Output) -> OutputFile:
        file = self._folder / output.name
        if output.is_stored:
            self._retry(partial(self._context.store.put, file, self._owner_id, "videos"))
        content = None if output.is_stored else file.read_bytes()
        return OutputFile(file_sha256(file), file.stat().st_size, content)


@contextmanager
def job_folder(run_dir: Path, job_id: str, *, is_of_run: bool) -> Iterator[Path]:
    """A temporary folder, by whose name clean-up knows it.

    Args:
        run_dir: folder of the job's run, or of a job without a run, whose folder is removed with it.
        job_id: the job.
        is_of_run: whether the job has a run.
    """
    jobs_dir = run_dir / "jobs"
    jobs_dir.mkdir(parents=True, exist_ok=True)
    try:
        with TemporaryDirectory(prefix=f"{job_id}-", dir=jobs_dir) as folder:
            yield Path(folder)
    finally:
        if not is_of_run:
            shutil.rmtree(run_dir, ignore_errors=True)
