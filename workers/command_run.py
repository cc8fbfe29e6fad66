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
from typing import Any, NamedTuple

from backend.access.auth import service as auth
from backend.coordination import claims
from backend.db import Run
from backend.platform.settings import Settings
from backend.runs.runs import service as runs
from backend.specs.events import EndedEvent
from backend.specs.host_commands import CommandEntry
from backend.specs.problems import InvalidSpec
from backend.specs.states import RunState
from workers import command_child, resume
from workers.engine_process import EngineProcess
from workers.outcome import AttemptOutcome, command_outcome
from workers.recorder import Recorder
from workers.supervisor import Supervisor

_PARENT = (sys.executable, "-I", str(Path(command_child.__file__)))
PASSED_ON = ("HOME", "LANG", "PATH")
"""Environment variables of the worker that every command gets."""


class Launch(NamedTuple):
    """What an attempt starts."""

    arguments: list[str]
    folder: Path
    environment: dict[str, str]


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

    def _prepare(self) -> None:
        """Set aside what earlier attempts have recorded: a script starts anew, and may find its own files."""
        resume.prepare_folder(self._context, self.claim)
        with self._context.writing() as session:
            spec = claims.resume_from(session, self.claim.run_id, self.claim.attempt, None)
            run = claims.lock(session, self.claim.run_id, self.claim.attempt)
            auth.revoke_token_of_run(session, run)
            token = auth.create_token_of_run(session, run)
            if token is None:
                raise resume.CannotStart("the user who started it, whose token its script had, is removed")
            try:
                self._launch = self._launch_of(spec, token)
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
        variables |= {
            "CALLBOARD_URL": server_url(settings),
            "CALLBOARD_TOKEN": token,
            "CALLBOARD_RUN": self.claim.run_id,
            "CALLBOARD_HOME": str(self._run_dir / "callboard"),
        }
        assert settings.commands_file is not None
        folder = settings.commands_file.resolve().parent / entry.folder
        return Launch(entry.argument_list(command["config"], command["seed"]), folder, variables)

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

    def _note_status(self, status: int, checkpoint: str | None) -> None:
        """Nothing: its exit statuses are its own."""

    def _outcome_of(self, run: Run, final_event: EndedEvent | None, recorder: Recorder) -> AttemptOutcome:
        process = self._process
        return command_outcome(
            run,
            process.returncode if process else None,
            is_shutting_down=self._is_shutting_down,
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
