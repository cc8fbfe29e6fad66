"""How commands reach the server. This module imports `remote` late: importing httpx would take a fifth of the
time of `callboard --help`."""

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from backend.platform.settings import Settings
from backend.specs.fields import ULID
from backend.specs.problems import quoted
from callboard_cli import fail, printable

if TYPE_CHECKING:
    from callboard_cli.remote import Remote


def connect() -> "Remote":
    """The server on this machine, or that of CALLBOARD_URL, over REST."""
    from callboard_cli.remote import Remote

    return Remote(Settings())


def id_check(kind: str, command: str) -> Callable[[Any], Any]:
    """A callback of arguments that are ids of this kind, which `callboard COMMAND list` shows."""

    def check(given: Any) -> Any:
        for text in [given] if isinstance(given, str) else given or []:
            if re.fullmatch(ULID, text) is None:
                listed = f"`callboard {command} list` shows the ids"
                raise fail(f"{kind}: {quoted(text)} is not the id of a {kind}; {listed}")
        return given

    return check


def save(parts: Iterable[bytes], target: Path) -> None:
    """Write a download to a file, which is replaced only once everything has arrived.

    Raises:
        OSError: it cannot be written.
    """
    target = target.resolve()
    if target.exists() and not target.is_file():  # a pipe or a device
        with target.open("wb") as file:
            file.writelines(parts)
        return
    partial = target.with_name(f".{target.name[:200]}.partial")
    try:
        with partial.open("wb") as file:
            file.writelines(parts)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def report_runs_of(remote: "Remote", path: str, row: dict[str, Any], *, wait: bool, as_json: bool) -> None:
    """Print a sweep or study, after it has ended if `wait`."""
    if wait:
        row = remote.wait_until(lambda row: row["state"] != "running", f"{path}/{row['id']}")
    if as_json:
        typer.echo(json.dumps(row))
    elif wait:
        typer.echo(printable(f"{row['id']}  {row['state']}: {row['state_reason']}"))
    else:
        typer.echo(row["id"])


def act(
    remote: "Remote",
    path: str,
    row_id: str,
    action: str,
    *,
    body: Any = None,
    wait: bool = False,
    as_json: bool,
) -> None:
    """Stop, retry or extend a sweep or study, and print it as `report_runs_of` does."""
    row = remote.request("POST", f"{path}/{row_id}/{action}", body=body)
    report_runs_of(remote, path, row, wait=wait, as_json=as_json)


def format_counts(runs: dict[str, int]) -> str:
    """Numbers of runs by state."""
    return ", ".join(f"{n} {state}" for state, n in sorted(runs.items())) or "none"
