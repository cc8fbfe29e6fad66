"""Kinds of jobs: each is declared in the `job.py` of its resource, by what it reads, runs and records.

A worker that has claimed a job loads what the kind needs from the database, fetches the files that its
command names into a folder, runs the engine in it, stores what the engine has written, and records the result
(`workers/jobs.py`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel
from sqlalchemy.orm import Session

from backend.db import Run
from backend.platform.artifacts import ArtifactKind, ArtifactStore

T = TypeVar("T")


class JobFailed(Exception):
    """The job cannot be done; the message is shown to the user."""


class TargetDeleted(JobFailed):
    """What it is for has been deleted."""

    def __init__(self) -> None:
        super().__init__("its run, episode, evaluation or video has been deleted")


class FileLost(JobFailed):
    """A file that it needs is missing or damaged."""

    def __init__(self, title: str) -> None:
        super().__init__(f"{title} is missing or damaged")


class EngineFailed(JobFailed):
    """The engine has failed; the message is the end of its output."""


@dataclass(frozen=True)
class Stored:
    """A file of the artifact store that the engine reads."""

    owner_id: str
    kind: ArtifactKind
    name: str
    sha256: str | None
    """None: any content is accepted."""
    title: str | None = None
    """Names it in the error of a job that cannot be done without it. None: if it is missing or damaged, the
    engine does not get its option."""
    unless: str | None = None
    """Option with whose file this one is not needed."""


@dataclass(frozen=True)
class Written:
    """A file of this content that the engine reads."""

    name: str
    content: bytes


@dataclass(frozen=True)
class Output:
    """A file that the engine may write."""

    name: str
    is_stored: bool = True
    """Whether it is stored among the videos of the job's run, or of its target if it has none; otherwise its
    content is part of the result."""


Options = dict[str, str | Stored | Written | Output]
"""Options of an engine: text, or files."""


@dataclass(frozen=True)
class Command:
    """How the engine does a job."""

    subcommand: str
    options: Options
    spec: BaseModel | None = None
    """The `spec.json` of the engine's folder, if it reads one."""


@dataclass(frozen=True)
class OutputFile:
    """What the engine has written to an output."""

    sha256: str
    n_bytes: int
    content: bytes | None
    """None if it is in the artifact store."""


@dataclass(frozen=True)
class Result:
    """What the engine has done."""

    answer: str
    """Its standard output."""
    files: Mapping[str, OutputFile]
    """Its outputs that exist, by option."""


@dataclass(frozen=True)
class JobKind(Generic[T]):
    """One kind of job."""

    name: str
    load: Callable[[Session, ArtifactStore, str], T | None]
    """Reads what a job needs, given its target's id. None: the target has been deleted, and nothing is to be
    done. Raises `JobFailed` if the job cannot be done."""
    command: Callable[[T], Command]
    record: Callable[[Session, str, Result], None]
    """Records the result for the target of this id, in the transaction that finishes the job."""
    record_failure: Callable[[Session, str, JobFailed], None] | None = None
    """Records that a file is lost or the engine has failed, which finishes the job, too. None: the job fails,
    and may be requested again."""
    rank: int = 1
    """Jobs of a lower rank are claimed first."""
    environment_of: type[Any] | None = Run
    """Table of the row whose `environment` a host must have: the job's run, or its target. None: any host can
    do the job."""
    changes_run: bool = True
    """Whether viewers of the job's run have to fetch it again. Who waits for a thumbnail follows its job."""


@cache
def job_kinds() -> Mapping[str, JobKind[Any]]:
    """Every kind by its name: the `KINDS` of the `job.py` of each resource.

    Resources stand above this package, so they are imported here only when the first job is claimed.
    """
    backend = Path(__file__).parents[2]
    resources = [".".join(path.parent.relative_to(backend).parts) for path in backend.glob("*/*/job.py")]
    kinds = [kind for name in sorted(resources) for kind in import_module(f"backend.{name}.job").KINDS]
    return {kind.name: kind for kind in kinds}
