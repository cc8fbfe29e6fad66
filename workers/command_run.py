"""Supervises one attempt at a run of a host's command, as `supervisor` does one of an engine.

The command's script logs to its run over REST, as any script does, by a token of this attempt alone.
"""

import json
import math
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

from backend.access.auth import service as auth
from backend.coordination import claims
from backend.coordination.context import TRANSIENT_ERRORS
from backend.db import Run
from backend.platform.settings import Settings
from backend.runs.runs import service as runs
from backend.specs.events import EndedEvent
from backend.specs.host_commands import CommandEntry
from backend.specs.problems import InvalidSpec
from backend.specs.states import RunState
from callboard.errors import Unreachable
from callboard.syncing import sync
from workers import command_child, resume
from workers.engine_process import EngineProcess
from workers.outcome import AttemptOutcome, command_outcome
from workers.recorder import Recorder
from workers.supervisor import Supervisor

_PARENT = (sys.executable, "-I", str(Path(command_child.__file__)))
PASSED_ON = ("HOME", "LANG", "PATH")
"""Environment variables of the worker that every command gets."""
_ENDING_S = 5.0
"""How long a killed process may take to end."""


class Launch(NamedTuple):
    """What an attempt starts."""

    arguments: list[str]
    folder: Path
    environment: dict[str, str]
    url: str
    token: str
    home: Path
    """Where the client keeps what it has not sent: an attempt's own, because its token writes no other."""


class CommandSupervisor(Supervisor):
    """Supervises one claimed attempt at a run of a command.

    Args:
        commands: those of this host, by name.
        arguments: those of `Supervisor`.
    """

    def __init__(self, *arguments: Any, commands: Mapping[str, CommandEntry], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._commands = commands
        self._launch: Launch | None = None
        self._is_cut_short = False
        """Whether the shutdown of the worker came before the end of its command, or of what that has sent."""

    def _prepare(self) -> None:
        """Create the attempt's token. What earlier attempts have logged stays until the script logs."""
        resume.prepare_folder(self._context, self.claim)
        with self._context.writing() as session:
            run = claims.lock(session, self.claim.run_id, self.claim.attempt)
            auth.revoke_token_of_run(session, run)
            token = auth.create_token_of_run(session, run)
            if token is None:
                raise resume.CannotStart("the user who started it, whose token its script had, is removed")
            try:
                self._launch = self._launch_of(run.spec, token)
            except InvalidSpec as error:
                raise resume.CannotStart(str(error)) from None

    def _launch_of(self, spec: Mapping[str, Any], token: str) -> Launch:
        command, settings = spec["command"], self._context.settings
        entry = self._commands.get(command["name"])
        if entry is None or entry.describe().requirement != spec["package"]:
            raise resume.CannotStart(f"{settings.host_name} has no such command {command['name']} any more")
        variables = {name: os.environ[name] for name in (*PASSED_ON, *entry.variables) if name in os.environ}
        gpus = self.gpu or ""
        if entry.gpu and self.gpu is None and self._may_use_gpu:
            gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "all")
        variables |= {} if gpus == "all" else {"CUDA_VISIBLE_DEVICES": gpus}
        url, home = server_url(settings), self._attempt_dir / "callboard"
        variables |= {
            "CALLBOARD_URL": url,
            "CALLBOARD_TOKEN": token,
            "CALLBOARD_RUN": self.claim.run_id,
            "CALLBOARD_HOME": str(home),
        }
        assert settings.commands_file is not None
        folder = settings.commands_file.resolve().parent / entry.folder
        arguments = entry.argument_list(command["config"], command["seed"])
        return Launch(arguments, folder, variables, url, token, home)

    def _start_engine(self, checkpoint: str | None) -> EngineProcess:
        assert self._launch is not None
        self._attempt_dir.mkdir(parents=True, exist_ok=True)
        file = self._attempt_dir / "command.json"
        what = {"arguments": self._launch.arguments, "folder": str(self._launch.folder)}
        file.write_text(json.dumps(what, indent=2))
        return self._started(
            EngineProcess(
                [str(file)],
                output=self._output,
                command=_PARENT,
                environment=self._launch.environment,
                inherits=False,
            )
        )

    def _after_start(self, recorder: Recorder) -> None:
        """It runs at once, and reports by its script, not by events."""
        recorder.has_started = True
        self._reported_at = math.inf

        def run() -> None:
            with self._context.writing() as session:
                row = claims.lock(session, self.claim.run_id, self.claim.attempt)
                if row.state == RunState.STARTING:
                    runs.transition(session, row, RunState.RUNNING, f"its command {row.command} runs")

        self._retry(run)

    def _ask_to_stop(self, reason: str, recorder: Recorder) -> None:
        assert self._process is not None
        self._process.terminate()

    def _after_exit(self, status: int, checkpoint: str | None) -> None:
        """Send what its script has logged and could not send, while the attempt's token is valid.

        It waits for the server as long as it takes, unless the run is killed or the worker shuts down.
        """
        self._is_cut_short = self._is_shutting_down
        while (problem := self._send_left()) is not None:
            if self._requested == "kill" or self._is_shutting_down or not self._has_token():
                self._is_cut_short |= self._is_shutting_down
                self._log(f"not all that its script has logged is sent: {problem}")
                break
            if self._backoff_s == 0.0:
                self._log(f"waiting to send what its script has logged; kill it to give that up: {problem}")
            self._wake.wait(self._next_backoff_s(Unreachable(problem)))
            self._check(interruptible=False)
        self._backoff_s = 0.0

    def _send_left(self) -> str | None:
        """Send what the script has left in its spool; return why something remains."""
        assert self._launch is not None
        _, _, _, url, token, home = self._launch
        deadline = monotonic() + _ENDING_S
        while True:
            done = sync(home / "spool", url=url, token=token, run=self.claim.run_id)
            if self.claim.run_id not in done.in_use:
                return "; ".join(done.problems) if done.n_remaining else None
            if monotonic() > deadline:
                return f"a process still uses {home}"
            sleep(0.05)

    def _has_token(self) -> bool:
        """Whether the attempt's token is valid, as far as is known: somebody may have revoked it."""
        assert self._launch is not None
        with suppress(*TRANSIENT_ERRORS), self._context.reading() as session:
            return auth.find_token_principal(session, self._launch.token) is not None
        return True

    def _outcome_of(self, run: Run, final_event: EndedEvent | None, recorder: Recorder) -> AttemptOutcome:
        process = self._process
        return command_outcome(
            run,
            process.returncode if process else None,
            is_shutting_down=self._is_cut_short if process else self._is_shutting_down,
            stop_timed_out=self._stop_timed_out,
            output_tail=process.output_tail() if process else "",
        )


def server_url(settings: Settings) -> str:
    """The address of the server for scripts on this host.

    Raises:
        CannotStart: it is not known.
    """
    if settings.url is not None:
        return settings.url
    with suppress(OSError, ValueError, TypeError, KeyError):
        return str(json.loads((settings.home_dir / "up.json").read_text("utf-8"))["url"]).rstrip("/")
    if settings.database_url is not None:
        raise resume.CannotStart(
            f"CALLBOARD_URL is not set on {settings.host_name}: its worker needs the server's address, to "
            "which scripts log"
        )
    return f"http://127.0.0.1:{settings.port}{settings.base_path}".rstrip("/")
