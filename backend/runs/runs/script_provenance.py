"""Where a script's run came from: host, command, packages and code of each process that has logged to it."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints

from backend.db import ScriptProcess
from backend.specs.fields import COMMIT, Schema, Strict, Text

MAX_DIFF_BYTES = 256 * 2**10
MAX_OUTPUT_CHARACTERS = 64 * 2**10
"""How much of what a process has printed last is kept."""
MAX_ARGUMENTS = 500
MAX_ARGUMENT_CHARACTERS = 2_000
MAX_PACKAGES = 2_000

Variable = Literal["RANK", "WORLD_SIZE", "SLURM_JOB_ID", "CUDA_VISIBLE_DEVICES"]
"""The only environment variables that are recorded."""


def _bounded(diff: str) -> str:
    if len(diff.encode()) > MAX_DIFF_BYTES:
        raise ValueError(f"must have at most {MAX_DIFF_BYTES:,} bytes")
    return diff


class ScriptProvenance(Strict):
    """Where a process of a script came from, as it reports it."""

    host: Annotated[Text, Field(max_length=200)] = Field(examples=["lab-3"])
    """Name of the machine."""
    command: list[Annotated[Text, Field(max_length=MAX_ARGUMENT_CHARACTERS)]] = Field(
        max_length=MAX_ARGUMENTS
    )
    """Command line. Values of arguments whose names have token, key, secret, password or auth are masked."""
    python: Annotated[Text, Field(max_length=100)] = Field(examples=["3.11.7"])
    """Version of Python."""
    packages: dict[Annotated[Text, Field(max_length=200)], Annotated[Text, Field(max_length=100)]] = Field(
        default={}, max_length=MAX_PACKAGES
    )
    """Installed package -> version."""
    commit: Annotated[str, StringConstraints(pattern=COMMIT)] | None = None
    """Commit of the repository that the script is in; null without one."""
    dirty: bool | None = None
    """Whether tracked files differed from the commit; null without one."""
    variables: dict[Variable, Annotated[Text, Field(max_length=1_000)]] = Field(default={})
    """Those of these environment variables that are set."""

    diff: Annotated[Text, AfterValidator(_bounded)] = Field(default="")
    """How tracked files differ from the commit, at most 256 KiB; without `.env`, `*.pem` and `*key*`."""


class ProcessOut(Schema):
    """A process that has logged to an external run."""

    source: str
    """The ULID that it has chosen when it started."""
    host: str
    """Name of its machine; empty until the process has reported where it came from."""
    command: list[str]
    """Its command line, without secrets."""
    python: str
    """Version of Python."""
    commit: str | None
    """Commit of the repository that the script is in; null without one."""
    dirty: bool | None
    """Whether tracked files differed from the commit; null without one."""
    variables: dict[str, str]
    """RANK, WORLD_SIZE, SLURM_JOB_ID and CUDA_VISIBLE_DEVICES, if they were set."""

    @classmethod
    def of(cls, row: ScriptProcess) -> Self:
        """From a process's row."""
        unknown: dict[str, Any] = {
            "host": "",
            "command": [],
            "python": "",
            "commit": None,
            "dirty": None,
            "variables": {},
        }
        return cls.model_validate({"source": row.source} | unknown | row.provenance)


class ProcessDetail(ProcessOut):
    """A process that has logged to an external run, with all that it was made of."""

    packages: dict[str, str]
    """Installed package -> version."""
    diff: str
    """How tracked files differed from the commit, at most 256 KiB."""
    output: str
    """The last 64 KiB of what it has printed."""

    @classmethod
    def of(cls, row: ScriptProcess) -> Self:
        """From a process's row."""
        unread = {"packages": row.provenance.get("packages", {}), "diff": row.diff, "output": row.output}
        return cls.model_validate(ProcessOut.of(row).model_dump() | unread)
