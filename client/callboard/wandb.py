"""Weights & Biases' calls, logging to a run: `import callboard.wandb as wandb` in a script written for it.

The step of a row is the `global_step` that is logged with it, as agent steps; without one it is `step`, else
the number of rows, and the run counts iterations. `init(step_unit="agent_steps")` says that `step` counts
agent steps. Numbers, texts, settings, videos and saved files are kept. Images, histograms, tables and the
like are accepted, counted in `run.n_not_kept`, and reported once each.
"""

from __future__ import annotations

import atexit
import glob
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from callboard.cleaning import as_number, as_steps, as_text
from callboard.config import UNKNOWN, described_by, plain_word
from callboard.external import ExternalRun
from callboard.files import frames_of_videos
from callboard.handlers import pass_on
from callboard.limits import MAX_ALGORITHM, MAX_GROUP, MAX_NAME, MAX_NOTES, MAX_TAG, MAX_TAGS
from callboard.rows import RUN_ID
from callboard.spool import new_ulid
from callboard.starting import init as start
from callboard.tally import warn

if TYPE_CHECKING:
    from typing import Self

__all__ = [
    "Artifact",
    "Audio",
    "Graph",
    "Histogram",
    "Html",
    "Image",
    "Molecule",
    "Object3D",
    "Plotly",
    "Settings",
    "Table",
    "Video",
    "alert",
    "define_metric",
    "finish",
    "init",
    "log",
    "log_artifact",
    "login",
    "plot",
    "save",
    "unwatch",
    "use_artifact",
    "util",
    "watch",
]

run: WandbRun | None
"""The run of the last `init`, until it is finished."""
config: WandbConfig
"""Settings of the current run."""
summary: WandbSummary
"""Summary of the current run."""

_STEP = "global_step"
_DEFAULT_FPS = 4.0
_LABELS = ("project", "entity", "group", "tags", "notes")
_METHODS = frozenset(
    {
        *("mark_preempting", "status", "display", "to_html", "project_name"),
        *("log_model", "use_model", "link_model", "use_artifact", "link_artifact"),
        *("upsert_artifact", "finish_artifact"),
    }
)
"""Methods of W&B's runs that are accepted and do nothing."""
_MAX_DEPTH = 10
_OF_START = frozenset(
    {"algorithm", "environment", "seed", "return_metric", "step_unit", "rewind_to", "url", "token"}
)
"""Options of `callboard.init` that may be passed to `init`."""


class _NotKept:
    """A value of a kind that is not kept."""

    kind = "values"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Accept anything."""

    def __getattr__(self, name: str) -> Any:
        """A method that accepts anything and does nothing; W&B's classes have many.

        Raises:
            AttributeError: the name is one of Python's own.
        """
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *arguments, **options: None


class Image(_NotKept):
    """An image, which is not kept."""

    kind = "images"


class Histogram(_NotKept):
    """A histogram, which is not kept."""

    kind = "histograms"


class Table(_NotKept):
    """A table, which is not kept."""

    kind = "tables"


class Audio(_NotKept):
    """A sound, which is not kept."""

    kind = "sounds"


class Html(_NotKept):
    """A page, which is not kept."""

    kind = "pages"


class Object3D(_NotKept):
    """A point cloud, which is not kept."""

    kind = "point clouds"


class Molecule(_NotKept):
    """A molecule, which is not kept."""

    kind = "molecules"


class Graph(_NotKept):
    """A graph, which is not kept."""

    kind = "graphs"


class Plotly(_NotKept):
    """A plot, which is not kept."""

    kind = "plots"


class _Plots:
    """W&B's functions for plots."""

    def __getattr__(self, name: str) -> Any:
        """One whose plot is not kept.

        Raises:
            AttributeError: the name is one of Python's own.
        """
        if name.startswith("__"):
            raise AttributeError(name)
        return Plotly


plot = _Plots()
"""W&B's functions for plots, which are not kept."""


class util:  # noqa: N801 -- W&B's name
    """Functions of W&B's module of this name."""

    @staticmethod
    def generate_id(length: int = 8) -> str:
        """A random id of a run: W&B's own, which `init` ignores."""
        return new_ulid()[-length:].lower()


class Artifact(_NotKept):
    """An artifact, which is not kept: `save` keeps files."""

    kind = "artifacts"


class Settings(_NotKept):
    """Settings of W&B, which do nothing here."""


class WandbVideo:
    """A video: a file, or frames as an array (T, C, H, W) or (N, T, C, H, W)."""

    def __init__(
        self,
        data_or_path: Any,
        caption: str | None = None,
        fps: float | None = None,
        format: str | None = None,  # W&B's name
        **options: Any,
    ) -> None:
        """Prepare; nothing is read.

        Args:
            data_or_path: a path, or the frames.
            caption: a line of the run's log.
            fps: frames per second, of frames; default: 4.
            format: ignored, as are other options.
            options: ignored.
        """
        self.data_or_path = data_or_path
        self.caption = caption
        self.fps = _DEFAULT_FPS if fps is None else fps

    def frames(self) -> Any:
        """What `ExternalRun.video` takes.

        Raises:
            ValueError: an array of another shape.
        """
        data = self.data_or_path
        if isinstance(data, (str, os.PathLike)):
            return data
        if hasattr(data, "detach"):
            data = data.detach().cpu()  # of torch
        array = np.asarray(data)
        if array.dtype != np.uint8:  # W&B reads all numbers as 0 to 255
            array = np.clip(array, 0, 255).astype(np.uint8)
        return frames_of_videos(array[None] if array.ndim == 4 else array)


Video = WandbVideo


class WandbConfig(Mapping[str, Any]):
    """Settings by name or attribute, with the values that the script has given; the run gets each of them."""

    def __init__(self, settings: Mapping[str, Any], external: ExternalRun | None) -> None:
        """Hold the settings with which a run has started."""
        object.__setattr__(self, "_settings", dict(settings))
        object.__setattr__(self, "_external", external)

    def __getitem__(self, name: str) -> Any:
        """A setting."""
        return self._settings[name]

    def __getattr__(self, name: str) -> Any:
        """A setting.

        Raises:
            AttributeError: there is none of this name.
        """
        try:
            return self.__dict__["_settings"][name]
        except KeyError:
            raise AttributeError(f"config has no setting {name!r}") from None

    def __setitem__(self, name: str, value: Any) -> None:
        """Add a setting, or replace it."""
        self.update({name: value})

    def __setattr__(self, name: str, value: Any) -> None:
        """Add a setting, or replace it."""
        self.update({name: value})

    def __iter__(self) -> Iterator[str]:
        """The names of the settings."""
        return iter(self._settings)

    def __len__(self) -> int:
        """The number of settings."""
        return len(self._settings)

    def __repr__(self) -> str:
        """The settings."""
        return repr(self._settings)

    def update(self, settings: Any, allow_val_change: bool | None = None) -> None:
        """Add settings, or replace them."""
        try:
            given = _settings(settings)
        except Exception as error:  # of any object
            pass_on(error)
            warn("callboard: settings are not kept: %s", as_text(error))
            return
        self._settings.update(given)
        if self._external is not None:
            self._external.config.update(given)

    def setdefaults(self, settings: Any) -> None:
        """Add settings that are not there yet."""
        self.update({name: value for name, value in dict(settings).items() if name not in self})

    def as_dict(self) -> dict[str, Any]:
        """A copy of the settings."""
        return dict(self._settings)


class WandbSummary(dict[str, Any]):
    """The results of a run by name. Each is a line of the run's log."""

    def __init__(self, external: ExternalRun | None) -> None:
        """An empty summary."""
        super().__init__()
        self._external = external

    def __setitem__(self, name: str, value: Any) -> None:
        """Note a result."""
        super().__setitem__(name, value)
        if self._external is not None:
            self._external.text(f"summary {as_text(name)}", as_text(value))

    def update(self, *arguments: Any, **more: Any) -> None:
        """Note several results."""
        for name, value in dict(*arguments, **more).items():
            self[name] = value


class WandbRun:
    """A run with the methods of W&B's. `init` creates it."""

    def __init__(
        self,
        external: ExternalRun | None,
        settings: Mapping[str, Any],
        unit: str | None,
        default_algorithm: str | None = None,
        labels: Mapping[str, Any] | None = None,
    ) -> None:
        """Wrap a run.

        Args:
            external: the run; None: nothing is logged (`mode="disabled"`).
            settings: the settings with which the run has started.
            unit: what its steps count, if the script has said so.
            default_algorithm: the algorithm, if no setting names it before the first row.
            labels: `project`, `entity`, `group`, `notes` and `tags` with which it has started.
        """
        self.external = external
        self.config = WandbConfig(settings, external)
        self.summary = WandbSummary(external)
        self.n_not_kept: dict[str, int] = {}
        """How many values of each kind were accepted and are not kept."""
        steps = 0 if external is None else external.agent_steps
        self.step = steps + 1 if steps else 0
        """Number of the row that is logged next. That of a resumed run follows its last one, as in W&B."""
        self._is_automatic = unit is None
        self._unit = unit
        self._default_algorithm = default_algorithm
        self._held: dict[Any, Any] = {}
        self._agent_steps: Any = None
        """The last `global_step`."""
        self.start_time = time.time()
        self._has_resumed = steps > 0
        self._labels: dict[str, Any] = {"project": "", "entity": "", "group": "", "notes": "", "tags": ()}
        self._labels.update(labels or {})
        self._later_name: str | None = None
        self._dir: str | None = None
        atexit.register(self._complete)  # before the run ends itself

    def __enter__(self) -> Self:
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
        """The run's id."""
        return None if self.external is None else self.external.id

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
        self._not_kept("later names")
        if self.external is not None:
            self.external.text("name", self._later_name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; later tags, notes and the like are lines of the run's log."""
        if name in _LABELS:
            self._labels[name] = value
            self._not_kept(f"later {name}")
            if self.external is not None:
                self.external.text(name, as_text(value))
        else:
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        """What describes the run, or a further method of W&B's, which counts that it is not kept.

        Raises:
            AttributeError: it is none of these.
        """
        if name in _LABELS:
            return self._labels[name]
        if name not in _METHODS:
            raise AttributeError(f"a run has no attribute {name!r}")

        def accept(*arguments: Any, **options: Any) -> Any:
            self._not_kept(f"calls of {name}")
            return _NotKept()

        return accept

    @property
    def resumed(self) -> bool:
        """Whether `init` has resumed it."""
        return self._has_resumed

    @property
    def offline(self) -> bool:
        """Whether it is only written to this machine."""
        return False

    @property
    def sweep_id(self) -> None:
        """None: no sweep of W&B's starts it."""
        return

    @property
    def path(self) -> str:
        """Entity, project and id."""
        return "/".join(filter(None, (self.entity, self.project, self.id)))

    @property
    def dir(self) -> str:
        """A folder on this machine for the script's files; `save` stores them with the run."""
        if self._dir is None:
            try:
                folder = Path("wandb", self.id or new_ulid(), "files").absolute()
                folder.mkdir(parents=True, exist_ok=True)
            except OSError:
                folder = Path(tempfile.mkdtemp(prefix="wandb-"))
            self._dir = str(folder)
        return self._dir

    @property
    def url(self) -> str | None:
        """Address of the run's page."""
        return None if self.external is None else self.external.url

    @property
    def disabled(self) -> bool:
        """Whether nothing is logged."""
        return self.external is None

    def get_url(self) -> str | None:
        """Address of the run's page."""
        return self.url

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
            sync: ignored.
        """
        if self.external is None:
            return
        if not issubclass(type(data), Mapping):
            self.external.log(data)  # which counts and reports it
            return
        if step is not None:
            steps = as_steps(step).value
            if steps is not None and steps != self.step:
                self._log_held()
                self.step = steps
        try:
            self._held |= _flat(data)
        except Exception as error:  # of any object
            pass_on(error)
            warn("callboard: a row is not kept: %s", as_text(error))
        if commit is False:
            return
        self._log_held()
        if step is None or commit:
            self.step += 1

    def finish(self, exit_code: int | None = None, quiet: bool | None = None) -> None:
        """End the run: as finished, or as failed with another exit code than 0."""
        self._complete()
        if self.external is not None:
            if exit_code:
                self.external.close("failed", f"exit code {exit_code}")
            else:
                self.external.close()
        self._forget()

    def save(self, glob_str: str | os.PathLike[str] | None = None, *arguments: Any, **options: Any) -> None:
        """Store files with the run, as `ExternalRun.checkpoint` does; without files, do nothing."""
        if self.external is None or glob_str is None:
            return
        for path in sorted(glob.glob(as_text(glob_str))):
            if Path(path).is_file():
                self.external.checkpoint(path)

    def alert(self, title: str, text: str = "", *arguments: Any, **options: Any) -> None:
        """Write a warning into the run's log."""
        if self.external is not None:
            self.external.text(title, text or None, level="warning")

    def define_metric(self, *arguments: Any, **options: Any) -> None:
        """Do nothing: the axis is that of `global_step`, or of rows."""

    def watch(self, *arguments: Any, **options: Any) -> None:
        """Count gradients that are not kept."""
        self._not_kept("gradients")

    def unwatch(self, *arguments: Any, **options: Any) -> None:
        """Do nothing."""

    def log_code(self, *arguments: Any, **options: Any) -> None:
        """Count code that is not kept."""
        self._not_kept("code")

    def log_artifact(self, *arguments: Any, **options: Any) -> None:
        """Count an artifact that is not kept: `save` keeps files."""
        self._not_kept("artifacts")

    def _complete(self) -> None:
        """Log what is held before the run ends."""
        self._log_held()
        self._name_algorithm()

    def _name_algorithm(self) -> None:
        """Name the algorithm by default, unless a setting has named it."""
        algorithm, self._default_algorithm = self._default_algorithm, None
        if algorithm is not None and self.external is not None:
            self.external._describe({"algorithm": algorithm})

    def _log_held(self) -> None:
        """Log the row that is held."""
        row, self._held = self._held, {}
        if row and self.external is not None:
            try:
                self._log_row(self.external, row)
            except Exception as error:  # of any object
                pass_on(error)
                warn("callboard: a row is not kept: %s", as_text(error))

    def _log_row(self, external: ExternalRun, row: Mapping[Any, Any]) -> None:
        self._name_algorithm()
        steps = self._steps_of(row)
        numbers = {}
        for name, value in row.items():
            kind = type(value)  # what an object says of itself may raise
            if issubclass(kind, WandbVideo):
                self._video(external, value, steps)
            elif issubclass(kind, _NotKept):
                self._not_kept(kind.kind)
            elif kind.__module__.partition(".")[0] == "wandb":
                self._not_kept("values of W&B's own types")
            elif issubclass(kind, str) and as_number(value).value is None:
                external.text(as_text(name), value, agent_steps=steps)
            else:
                numbers[name] = value
        if numbers:
            external.log(numbers, agent_steps=steps)

    def _steps_of(self, row: Mapping[Any, Any]) -> Any:
        """The steps of a row. Sets what the run's steps count as soon as that is known."""
        given = row.get(_STEP)
        if self._unit != "iterations" or self._is_automatic:
            if given is not None and as_steps(given).value is not None:
                self._agent_steps = given
                self._set_unit("agent_steps")
            elif self._unit is None:
                self._set_unit("iterations")
        return self.step if self._agent_steps is None else self._agent_steps

    def _set_unit(self, unit: str) -> None:
        if self._unit != unit and self.external is not None:
            if self._unit is not None or unit == "iterations":
                self.external._describe({"step_unit": unit})
            self._unit = unit

    def _video(self, external: ExternalRun, video: WandbVideo, steps: Any) -> None:
        try:
            external.video(video.frames(), agent_steps=steps, fps=video.fps)
            if video.caption:
                external.text("video", video.caption, agent_steps=steps)
        except Exception as error:  # of any object
            pass_on(error)
            warn("callboard: a video is not kept: %s", as_text(error))
            self._not_kept("videos")

    def _not_kept(self, kind: str) -> None:
        if kind not in self.n_not_kept:
            warn("callboard: %s are not kept", kind)
        self.n_not_kept[kind] = self.n_not_kept.get(kind, 0) + 1

    def _forget(self) -> None:
        atexit.unregister(self._complete)
        if _active.get("run") is self:
            del _active["run"]


_active: dict[str, WandbRun] = {}


def init(
    project: str | None = None,
    entity: str | None = None,
    config: Any = None,
    name: str | None = None,
    group: str | None = None,
    tags: Any = None,
    notes: str | None = None,
    id: str | None = None,
    resume: Any = None,
    mode: str | None = None,
    reinit: Any = None,
    sync_tensorboard: bool | None = None,
    **options: Any,
) -> WandbRun:
    """Start a run, or return the one that has not been finished.

    Args:
        project: a tag of the run, as is `entity`.
        entity: see `project`.
        config: settings: a mapping, or an object with attributes. Its `env_id`, `exp_name` and `seed` are the
            run's environment, algorithm and seed, also if they come later. A run whose settings name no
            algorithm before its first row has that of the script's name.
        name: name of the run; default: that of the script.
        group: group of the run.
        tags: words to find the run by.
        notes: free text.
        id: id of a run of this server, which is then resumed; other ids are ignored.
        resume: ignored, since `id` says so.
        mode: `disabled`: nothing is logged; default: the environment's `WANDB_MODE`.
        reinit: end a run that has not been finished, and start another one.
        sync_tensorboard: reported: `callboard.SummaryWriter` does so.
        options: `algorithm`, `environment`, `seed`, `return_metric`, `step_unit`, `rewind_to`, `url` and
            `token` as for `callboard.init`; W&B's others are ignored.

    Raises:
        ValueError: an argument, address or token that cannot be used.
    """
    active = _active.get("run")
    if active is not None:
        if not reinit or reinit == "return_previous":
            return active
        active.finish()
    settings = _settings(config)
    given = {field: value for field, value in options.items() if field in _OF_START and value is not None}
    external = default_algorithm = None
    if (mode or os.environ.get("WANDB_MODE")) != "disabled":
        if sync_tensorboard:
            warn("callboard: sync_tensorboard does nothing: write with callboard.SummaryWriter instead")
        if id is not None and RUN_ID.fullmatch(as_text(id)):
            connection = {field: given[field] for field in ("rewind_to", "url", "token") if field in given}
            external = start(id=id, **connection)
            external.config.update(settings)
        else:
            labels = [project, entity, *([tags] if isinstance(tags, str) else tags or ())]
            named = described_by(settings)
            if "algorithm" not in {**named, **given}:
                default_algorithm = plain_word(_script(), MAX_ALGORITHM)
            fields: dict[str, Any] = {"algorithm": UNKNOWN, "environment": UNKNOWN} | named
            fields |= {
                "name": name or _script(),
                "group": as_text(group)[:MAX_GROUP] if group else None,
                "tags": [*dict.fromkeys(as_text(label)[:MAX_TAG] for label in labels if label)][:MAX_TAGS],
                "notes": None if notes is None else as_text(notes)[:MAX_NOTES],
                "config": settings,
            }
            fields["name"] = as_text(fields["name"])[:MAX_NAME]
            external = start(**(fields | given))
    described = {"project": project, "entity": entity, "group": group, "notes": notes}
    labelled: dict[str, Any] = {
        name: as_text(value) for name, value in described.items() if value is not None
    }
    labelled["tags"] = (tags,) if isinstance(tags, str) else tuple(tags or ())
    _active["run"] = WandbRun(external, settings, given.get("step_unit"), default_algorithm, labelled)
    return _active["run"]


def log(data: Mapping[str, Any], step: Any = None, commit: bool | None = None, **options: Any) -> None:
    """Log the values of a row, as `WandbRun.log` does; without a run, warn once."""
    if (active := _current("log")) is not None:
        active.log(data, step, commit)


def finish(exit_code: int | None = None, quiet: bool | None = None) -> None:
    """End the run, if there is one."""
    if (active := _active.get("run")) is not None:
        active.finish(exit_code)


def save(glob_str: str | os.PathLike[str] | None = None, *arguments: Any, **options: Any) -> None:
    """Store files with the run; without files, do nothing."""
    if (active := _current("save")) is not None:
        active.save(glob_str)


def alert(title: str, text: str = "", *arguments: Any, **options: Any) -> None:
    """Write a warning into the run's log."""
    if (active := _current("alert")) is not None:
        active.alert(title, text)


def log_artifact(*arguments: Any, **options: Any) -> None:
    """Count an artifact that is not kept: `save` keeps files."""
    if (active := _current("log_artifact")) is not None:
        active.log_artifact()


def use_artifact(*arguments: Any, **options: Any) -> Artifact:
    """Count an artifact that is not read."""
    if (active := _current("use_artifact")) is not None:
        active.log_artifact()
    return Artifact()


def watch(*arguments: Any, **options: Any) -> None:
    """Count gradients that are not kept."""
    if (active := _current("watch")) is not None:
        active.watch()


def unwatch(*arguments: Any, **options: Any) -> None:
    """Do nothing."""


def define_metric(*arguments: Any, **options: Any) -> None:
    """Do nothing: the axis is that of `global_step`, or of rows."""


def login(*arguments: Any, **options: Any) -> bool:
    """Do nothing: `CALLBOARD_TOKEN` is the token."""
    return True


def __getattr__(name: str) -> Any:
    """`run`, `config` and `summary` are those of the current run."""
    active = _active.get("run")
    if name == "run":
        return active
    if name in ("config", "summary"):
        if active is None:
            raise AttributeError(f"wandb.{name}: call wandb.init() first")
        return getattr(active, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_reported: set[str] = set()


def _current(function: str) -> WandbRun | None:
    active = _active.get("run")
    if active is None and function not in _reported:
        _reported.add(function)
        warn("callboard: wandb.%s does nothing without a run: call wandb.init() first", function)
    return active


def _script() -> str:
    return Path(sys.argv[0] if sys.argv else "").stem or "script"


def _settings(given: Any) -> dict[str, Any]:
    """Settings as a mapping.

    Raises:
        ValueError: they are neither a mapping nor an object with attributes.
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return dict(given)
    try:
        return dict(vars(given))
    except TypeError:
        raise ValueError(f"config: must be a mapping or a namespace: got {given!r:.80}") from None


def _flat(data: Mapping[Any, Any], prefix: str = "", depth: int = 0) -> dict[Any, Any]:
    flat: dict[Any, Any] = {}
    for name, value in data.items():
        if issubclass(type(value), Mapping) and depth < _MAX_DEPTH:
            flat |= _flat(value, f"{prefix}{as_text(name)}.", depth + 1)
        else:
            flat[f"{prefix}{as_text(name)}" if prefix else name] = value
    return flat
