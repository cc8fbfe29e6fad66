"""A run with the methods of W&B's."""

from __future__ import annotations

import atexit
import glob
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from callboard.cleaning import as_number, as_text
from callboard.external import ExternalRun
from callboard.foreign import Foreign
from callboard.spool import new_ulid
from callboard.wandb.active import ACTIVE
from callboard.wandb.errors import UsageError
from callboard.wandb.media import NotKept
from callboard.wandb.rows import Rows
from callboard.wandb.settings import WandbConfig, WandbSummary
from callboard.wandb.table import TABLE

_LABELS = {"project": "", "entity": "", "group": "", "job_type": "", "notes": "", "tags": ()}
_VALUES: dict[str, Any] = {"sweep_id": None, "sweep_url": None, "offline": False, "starting_step": 0}
_WAIT_S = 60.0
_MAX_TITLES = 1_000
_LEVELS = {"INFO": "info", "WARN": "warning", "WARNING": "warning", "ERROR": "error"}
_KINDS = {"watch": "gradients", "log_code": "code"}
"""What the methods give that are counted as not kept; those of artifacts give artifacts."""


class WandbRun:
    """A run with the methods of W&B's. `init` creates it."""

    def __init__(
        self,
        external: ExternalRun | None,
        settings: Mapping[str, Any],
        unit: str | None,
        default_algorithm: str | None = None,
        labels: Mapping[str, Any] | None = None,
        own_id: str | None = None,
        foreign: Foreign | None = None,
        given: Any = None,
        *,
        has_resumed: bool = False,
    ) -> None:
        """Wrap a run.

        Args:
            external: the run; None: nothing is logged (`mode="disabled"`).
            settings: the settings with which the run has started.
            unit: what its steps count, if the script has said so.
            default_algorithm: the algorithm, if no setting names it before the first row.
            labels: `project`, `entity`, `group`, `job_type`, `notes` and `tags` with which it has started.
            own_id: the id that the script has chosen.
            foreign: what says, once a run, what is not used.
            given: W&B's settings, as they were given.
            has_resumed: whether it was there before.
        """
        self.external = external
        self.config = WandbConfig(settings, external)
        self.summary = WandbSummary(external)
        self.foreign = foreign or Foreign("wandb", TABLE)
        self.n_not_kept = self.foreign.n_not_kept
        """How many values of each kind were accepted and are not kept."""
        self.settings = given
        self._rows: Rows | None = None  # a resumed run's next row follows its last one, as in W&B
        if external is not None:
            self._rows = Rows(external, self.foreign, self.summary, unit, external.agent_steps + has_resumed)
        self.resumed = has_resumed
        self.start_time = time.time()
        self.disabled = external is None
        self._default_algorithm = default_algorithm
        self._own_id = own_id
        self._labels: dict[str, Any] = _LABELS | dict(labels or {})
        self._later_name: str | None = None
        self._dir: str | None = None
        self._alerted_at: dict[str, float] = {}
        """Title of an alert -> when the last one with it was raised."""
        atexit.register(self._complete)  # before the run ends itself

    def __enter__(self) -> WandbRun:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the run in the state that the exception means."""
        self._complete()
        if self.external is not None:
            self.external.__exit__(kind, error, trace)
        self._forget()

    def __repr__(self) -> str:
        """Name and address."""
        return repr(self.external)

    def _repr_html_(self) -> str:
        """A link to its page, in a notebook."""
        return "" if self.external is None else self.external._repr_html_()

    @property
    def id(self) -> str | None:
        """The id that the script has chosen, else that of the server."""
        return self._own_id or (None if self.external is None else self.external.id)

    @property
    def name(self) -> str:
        """The run's name, or the one that the script has given it since."""
        if self._later_name is not None:
            return self._later_name
        return "" if self.external is None else self.external.name

    @name.setter
    def name(self, name: str) -> None:
        """Write a later name into the run's log. Its page keeps the name of `init`."""
        self._later_name = as_text(name)
        self.foreign.not_kept("later names")
        if self.external is not None:
            self.external.text("name", self._later_name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; later tags, notes and the like are lines of the run's log."""
        if name in _LABELS:
            self._labels[name] = value
            self.foreign.not_kept(f"later {name}")
            if self.external is not None:
                self.external.text(name, as_text(value))
        else:
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        """What describes the run, or a further method of W&B's, which does nothing and says so.

        Raises:
            AttributeError: it is one of Python's own.
        """
        if name in _LABELS:
            return self._labels[name]
        if name in _VALUES:
            return _VALUES[name]
        if name.startswith("__") or name in ("_labels", "foreign"):
            raise AttributeError(f"a run has no attribute {name!r}")

        def accept(*arguments: Any, **options: Any) -> Any:
            if name in _KINDS or "artifact" in name:
                self.foreign.not_kept(_KINDS.get(name, "artifacts"), f"Run.{name}")
            elif not name.startswith("_"):
                self.foreign.refuse(f"Run.{name}", UsageError, is_running=True)
            return NotKept()

        return accept

    @property
    def step(self) -> int:
        """Number of the row that is logged next."""
        return 0 if self._rows is None else self._rows.step

    @property
    def path(self) -> str:
        """Entity, project and id."""
        return "/".join(filter(None, (self.entity, self.project, self.id)))

    @property
    def dir(self) -> str:
        """A folder on this machine for the script's files; `save` stores them with the run."""
        if self._dir is None:
            try:
                root = getattr(self.settings, "root_dir", None) or os.environ.get("WANDB_DIR") or "."
                folder = Path(root, "wandb", self.id or new_ulid(), "files")
                folder.absolute().mkdir(parents=True, exist_ok=True)
                folder = folder.absolute()
            except OSError:
                folder = Path(tempfile.mkdtemp(prefix="wandb-"))
            self._dir = str(folder)
        return self._dir

    sync_dir = dir

    @property
    def url(self) -> str | None:
        """Address of the run's page."""
        return None if self.external is None else self.external.url

    project_url = url

    def get_url(self) -> str | None:
        """Address of the run's page."""
        return self.url

    def to_html(self, height: int = 420, hidden: bool = False) -> str:
        """A link to its page."""
        return self._repr_html_()

    def log(
        self,
        data: Mapping[str, Any],
        step: Any = None,
        commit: bool | None = None,
        sync: bool | None = None,
    ) -> None:
        """Log the values of a row. Never raises.

        Args:
            data: numbers, texts, videos, or mappings of them, whose names are joined by a dot.
            step: number of the row; default: one more than that of the last row, or the same if the step of
                that row was given without `commit=True`.
            commit: False: the row is not complete yet.
            sync: of no effect: nothing waits.
        """
        if self._rows is not None:
            self._name_algorithm()
            self._rows.log(data, step, commit)

    def finish(self, exit_code: int | None = None, quiet: bool | None = None) -> None:
        """End the run: as finished, or as failed with another exit code than 0."""
        self._complete()
        if self.external is not None:
            if exit_code:
                self.external.close("failed", f"exit code {exit_code}")
            else:
                self.external.close()
        self._forget()

    def save(
        self,
        glob_str: str | os.PathLike[str] | None = None,
        base_path: Any = None,
        policy: str | None = None,
        **options: Any,
    ) -> list[str]:
        """Store files with the run, as `ExternalRun.checkpoint` does; without files, do nothing."""
        if policy not in (None, "now", "live"):
            self.foreign.say("save.policy")
        paths = [path for path in sorted(glob.glob(as_text(glob_str or ""))) if Path(path).is_file()]
        for path in paths:
            if self.external is not None:
                self.external.checkpoint(path)
        return paths

    def log_model(self, path: Any, name: str | None = None, aliases: Any = None) -> None:
        """Store a file, or the files of a folder, with the run."""
        self.foreign.arguments("log_model", {"name": name, "aliases": aliases})
        text = as_text(path)
        self.save(os.path.join(glob.escape(text), "*") if os.path.isdir(text) else glob.escape(text))

    def alert(self, title: str, text: str = "", level: Any = None, wait_duration: Any = None) -> None:
        """Raise an alert, unless one with its title was raised in the last minute, or `wait_duration`: then
        it is a line of the run's log only."""
        if self.external is None:
            return
        named = as_text(getattr(level, "value", level)).upper()
        chosen = _LEVELS.get(named, "warning")
        wait_s = as_number(getattr(wait_duration, "total_seconds", lambda: wait_duration)())[0]
        now, heading = time.monotonic(), as_text(title)
        before = self._alerted_at.get(heading)
        if before is None or now - before >= (_WAIT_S if wait_s is None else wait_s):
            if len(self._alerted_at) >= _MAX_TITLES:
                self._alerted_at.clear()
            self._alerted_at[heading] = now
            self.external.alert(heading, text or "", level=chosen)
        else:
            self.external.text(heading, text or None, level=chosen)

    def write_logs(self, text: str) -> None:
        """Write a line into the run's log."""
        if self.external is not None:
            self.external.text(text)

    def define_metric(
        self, name: str, step_metric: Any = None, step_sync: Any = None, *arguments: Any, **options: Any
    ) -> NotKept:
        """Name the axis of metrics: `step_metric`, a metric whose values are their steps."""
        hidden, summary, *_ = (*arguments, None, None)
        self.foreign.arguments("define_metric", {"hidden": hidden, "summary": summary} | options)
        if step_metric:
            axis = step_metric if isinstance(step_metric, str) else getattr(step_metric, "name", step_metric)
            if self._rows is not None:
                self._rows.axes.define(as_text(name), as_text(axis))
        return NotKept()

    def unwatch(self, models: Any = None) -> None:
        """Do nothing: nothing is watched."""

    def share(self) -> ExternalRun | None:
        """The run, for a `SummaryWriter`, whose steps are agent steps."""
        if self._rows is not None:
            self._rows.has_writer = True
            self._rows.set_unit("agent_steps")
        return self.external

    def _complete(self) -> None:
        """Log what is held before the run ends."""
        if self._rows is not None:
            self._rows.complete()
        self._name_algorithm()

    def _name_algorithm(self) -> None:
        """Name the algorithm by default, unless a setting has named it."""
        algorithm, self._default_algorithm = self._default_algorithm, None
        if algorithm is not None and self.external is not None:
            self.external._describe({"algorithm": algorithm})

    def _forget(self) -> None:
        atexit.unregister(self._complete)
        if ACTIVE.get("run") is self:
            del ACTIVE["run"]


Run = WandbRun
