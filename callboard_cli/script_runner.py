"""`callboard experiments run`: starts a script in this terminal for each run of a sweep that is due."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import typer

from backend.specs.host_commands import script_arguments
from backend.specs.problems import InvalidSpec
from callboard_cli import fail, printable
from callboard_cli.connection import connect
from callboard_cli.remote import MAX_OUTAGE_S
from workers import command_child

if TYPE_CHECKING:
    from callboard_cli.remote import Remote

_POLL_S = 2.0
_REPORT_S = 15.0
"""Interval of reports that a script goes on: the server takes a run as lost after a minute."""
_STOP_TIMEOUT_S = 20.0
"""How long a script may take to end."""
_MAX_FAILURES = 3
"""After so many scripts in a row that have failed, the fault is theirs, and no more are started."""


def run_scripts(sweep_id: str, command: Sequence[str]) -> None:
    """Start the command for each run of a sweep that is due, one after another, until none is left.

    Raises:
        typer.Exit: there is no such sweep, its runs are started by workers, or the command cannot be started;
            (1) scripts fail; (130) it was interrupted.
    """
    if shutil.which(command[0]) is None:
        raise fail(f"{command[0]}: no such program")
    with connect() as remote, _interrupted_by_sigterm():
        sweep = remote.request("GET", f"/sweeps/{sweep_id}")
        if sweep["spec"]["run"].get("origin") != "external":
            raise fail(f"sweep {sweep_id}: workers start its runs: start one with --script")
        n_failed = 0
        is_waiting = False
        while n_failed < _MAX_FAILURES:
            try:
                due = _patiently(lambda: remote.request("POST", f"/sweeps/{sweep_id}/next"))
                if due["run"] is None:
                    if due["state"] != "running":
                        typer.echo(printable(f"the sweep is {due['state']}: {due['state_reason']}"))
                        return
                    if not is_waiting:
                        typer.echo("waiting: no run is due until others have ended", err=True)
                    is_waiting = True
                    sleep(_POLL_S)
                    continue
            except KeyboardInterrupt:
                raise typer.Exit(128 + signal.SIGINT) from None
            is_waiting = False
            has_failed = _run(remote, sweep_id, due, command)
            n_failed = n_failed + 1 if has_failed else 0
        raise fail(f"the last {_MAX_FAILURES} scripts have failed: no more are started", 1)


def _run(remote: "Remote", sweep_id: str, due: dict[str, Any], command: Sequence[str]) -> bool:
    """Run the script of a run, and report its end; return whether it has failed.

    Raises:
        typer.Exit: it was interrupted; its configuration is free again.
    """
    run_id = due["run"]

    def report(state: str, reason: str | None = None, *, free: bool = False) -> Any:
        body = {"run": run_id, "state": state, "reason": reason, "free": free}
        return remote.request("POST", f"/sweeps/{sweep_id}/report", body=body)

    try:
        arguments = [*command, *script_arguments(due["config"], due["seed"])]
    except InvalidSpec as error:  # of another version's server
        report("stopped", str(error), free=True)
        raise fail(str(error)) from None
    typer.echo(printable(f"run {run_id}: {' '.join(arguments)}"), err=True)
    variables = {
        "CALLBOARD_URL": remote.url,
        "CALLBOARD_TOKEN": due["token"],
        "CALLBOARD_RUN": run_id,
    }
    try:
        with _started(arguments, variables) as script:
            try:
                is_stopped = _follow(script, report)
            except KeyboardInterrupt:
                _stop(script)
                raise
        _send_left(remote.url, due["token"], run_id, MAX_OUTAGE_S)
    except KeyboardInterrupt:
        _send_left(remote.url, due["token"], run_id, 0.0)
        _patiently(lambda: report("stopped", "interrupted in its terminal", free=True))
        typer.echo(f"run {run_id}: stopped; its configuration is free again", err=True)
        raise typer.Exit(128 + signal.SIGINT) from None
    status = script.returncode
    if is_stopped or status == 0:
        state, reason = ("stopped", "stopped on request") if is_stopped else ("finished", None)
    elif status > 0:
        state, reason = "failed", f"its script exited with status {status}"
    else:
        state, reason = "failed", f"its script was killed ({signal.Signals(-status).name})"
    ended = _patiently(lambda: report(state, reason))
    typer.echo(f"run {run_id}: {ended['state']}", err=True)
    return bool(ended["state"] == "failed")


def _send_left(url: str, token: str, run_id: str, timeout_s: float) -> None:
    """Send what a script has logged and could not send, while its token is valid."""
    from callboard.syncing import sync

    deadline = monotonic() + timeout_s
    while (done := sync(url=url, token=token, run=run_id)).n_remaining:
        if monotonic() > deadline:
            problems = "; ".join(done.problems)
            typer.echo(printable(f"not all is sent: {problems}; `callboard sync` sends it"), err=True)
            return
        sleep(_POLL_S)


@contextmanager
def _started(arguments: Sequence[str], variables: dict[str, str]) -> Iterator["subprocess.Popen[bytes]"]:
    """The process of a script. Nothing that it has started outlives it, or this process."""
    with tempfile.TemporaryDirectory(prefix="callboard-") as folder:
        file = Path(folder) / "command.json"
        file.write_text(json.dumps({"arguments": [*arguments], "folder": str(Path.cwd())}), "utf-8")
        script = subprocess.Popen(
            [sys.executable, "-I", command_child.__file__, str(file), "--parent", str(os.getpid())],
            env=os.environ | variables,
            start_new_session=True,  # Ctrl-C is handed on once, as SIGTERM
        )
        try:
            yield script
        finally:
            with suppress(ProcessLookupError):
                script.kill()
            script.wait()


def _follow(script: "subprocess.Popen[bytes]", report: Callable[[str], Any]) -> bool:
    """Report that a script goes on, until it has ended; return whether it was stopped on request."""
    is_stopped = False
    while True:
        with suppress(subprocess.TimeoutExpired):
            script.wait(_REPORT_S)
            return is_stopped
        try:
            is_stopped = report("running")["stop_requested"]
        except typer.Exit as error:
            if error.exit_code != 1:  # the run is gone, or somebody else's
                is_stopped = True
        if is_stopped:
            _stop(script)


def _stop(script: "subprocess.Popen[bytes]") -> None:
    """End a script, and what it has started: at once at another Ctrl-C."""
    script.terminate()
    try:
        script.wait(_STOP_TIMEOUT_S)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        script.kill()
        script.wait()


def _patiently(request: Callable[[], Any]) -> Any:
    """The answer to a request, which is sent again while the server is away."""
    deadline = monotonic() + MAX_OUTAGE_S
    while True:
        try:
            return request()
        except typer.Exit as error:
            if error.exit_code != 1 or monotonic() > deadline:
                raise
        sleep(_POLL_S)


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """Have SIGTERM do what Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
