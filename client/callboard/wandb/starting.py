"""Starts, resumes or forks a run as W&B's `init` does."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from callboard.cleaning import as_text
from callboard.config import UNKNOWN, described_by, plain_word
from callboard.errors import CallboardError
from callboard.external import ExternalRun
from callboard.foreign import Foreign
from callboard.limits import MAX_ALGORITHM, MAX_GROUP, MAX_NAME, MAX_NOTES, MAX_TAG, MAX_TAGS
from callboard.names import project_of
from callboard.ranks import rank
from callboard.rows import RUN_ID
from callboard.starting import init as start
from callboard.tally import warn
from callboard.transport import Transport, find_server
from callboard.wandb.active import ACTIVE
from callboard.wandb.errors import UsageError
from callboard.wandb.settings import settings_of
from callboard.wandb.table import TABLE
from callboard.wandb.wandb_run import WandbRun

_OF_START = frozenset(
    {"algorithm", "environment", "seed", "return_metric", "step_unit", "rewind_to", "url", "token"}
)
"""Options of `callboard.init` that may be passed to `init`."""
_OF_SETTINGS = {f"run_{name}": name for name in ("id", "name", "group", "tags", "notes", "job_type")}
_OF_SETTINGS |= {
    name: name for name in ("project", "entity", "mode", "resume", "resume_from", "fork_from", "reinit")
}
_OF_SETTINGS |= {"root_dir": "dir", "sync_tensorboard": "sync_tensorboard"}
_OF_VARIABLES = {
    **{f"WANDB_{name.upper()}": name for name in ("project", "entity", "name", "notes", "mode", "resume")},
    **{"WANDB_RUN_ID": "id", "WANDB_RUN_GROUP": "group", "WANDB_JOB_TYPE": "job_type", "WANDB_TAGS": "tags"},
}
_POINT = re.compile(r"(?P<id>[^?]+)\?_step=(?P<step>\d+)")
_OFF = frozenset({"1", "true", "yes", "on"})


class _Started(NamedTuple):
    """A run as it has started."""

    external: ExternalRun | None
    own_id: str | None = None
    """The id that the script has chosen."""
    default_algorithm: str | None = None
    has_resumed: bool = False


class Settings:
    """W&B's settings, by name or attribute; those that were not given are None."""

    def __init__(self, **given: Any) -> None:
        """Hold what was given."""
        self.given = given

    def __getattr__(self, name: str) -> Any:
        """A setting.

        Raises:
            AttributeError: the name is one of Python's own.
        """
        if name.startswith("__") or name == "given":
            raise AttributeError(name)
        return self.given.get(name)

    def update(self, **given: Any) -> None:
        """Add settings."""
        self.given |= given


def init(
    project: str | None = None, entity: str | None = None, config: Any = None, **options: Any
) -> WandbRun:
    """Start a run, or return the one that has not been finished.

    Args:
        project: the run's project.
        entity: a tag of the run, as is `job_type`.
        config: settings: a mapping, or an object with attributes. Its `env_id`, `exp_name` and `seed` are the
            run's environment, algorithm and seed, also if they come later. A run whose settings name no
            algorithm before its first row has that of the script's name.
        options: W&B's others, of which the table says what they mean; and `algorithm`, `environment`,
            `seed`, `return_metric`, `step_unit`, `rewind_to`, `url` and `token` as for `callboard.init`.
            `name`, `group`, `tags` and `notes` are the run's. `id` is that of a run of this server, which is
            resumed, or one of the script's own: `resume="allow"` or `"must"` then finds the run that has
            started with it in this project. `resume_from="ID?_step=50"` continues after row 50,
            `fork_from` starts another run that names this one. `mode="disabled"` logs nothing.

    Raises:
        ValueError: an argument, address or token that cannot be used.
        UsageError: an argument that Callboard cannot follow, or no run to resume.
    """
    active: WandbRun | None = ACTIVE.get("run")
    foreign = Foreign("wandb", TABLE)
    given = _given(foreign, {"project": project, "entity": entity} | options)
    if active is not None:
        if not given.get("reinit") or given["reinit"] in ("return_previous", "default"):
            return active
        if given["reinit"] == "create_new":
            foreign.say("init.reinit=create_new")
        active.finish()
    settings = _chosen(settings_of(config), options)
    tags = given.get("tags")
    labels: dict[str, Any] = {
        name: as_text(given[name])
        for name in ("project", "entity", "group", "job_type", "notes")
        if given.get(name)
    }
    labels["tags"] = (tags,) if isinstance(tags, str) else tuple(tags or ())
    started = _Started(None)
    if given.get("mode") != "disabled":
        started = _start(foreign, given, labels, settings)
    of_wandb = options.get("settings") or Settings()
    if given.get("dir") is not None and isinstance(of_wandb, Settings):
        of_wandb.update(root_dir=as_text(given["dir"]))
    run = ACTIVE["run"] = WandbRun(
        started.external,
        settings,
        given.get("step_unit"),
        started.default_algorithm,
        labels,
        started.own_id,
        foreign,
        of_wandb,
        has_resumed=started.has_resumed,
    )
    return run


def _given(foreign: Foreign, options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, or what W&B's settings and variables say instead; says what is not used."""
    given = {name: value for name, value in options.items() if value is not None}
    foreign.arguments("init", {name: given[name] for name in given if name not in _OF_START})
    settings = given.get("settings")
    of_settings = dict(settings) if isinstance(settings, Mapping) else getattr(settings, "given", {})
    foreign.arguments("Settings", of_settings)
    for name, argument in _OF_SETTINGS.items():
        if of_settings.get(name) is not None:
            given.setdefault(argument, of_settings[name])
    for name in sorted(os.environ):
        if name.startswith("WANDB_") and os.environ[name]:
            foreign.say(name)
    for name, argument in _OF_VARIABLES.items():
        if os.environ.get(name):
            text = os.environ[name]
            given.setdefault(argument, text.split(",") if argument == "tags" else text)
    if os.environ.get("WANDB_DISABLED", "").lower() in _OFF:
        given["mode"] = "disabled"
    if given.get("mode") in ("offline", "dryrun"):
        foreign.say("init.mode=offline", "what is logged is sent as soon as the server can be reached")
    if given.get("sync_tensorboard") or given.get("tensorboard"):
        foreign.say("init.sync_tensorboard")
    return given


def _chosen(settings: dict[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that `config_include_keys` and `config_exclude_keys` leave."""
    included, excluded = options.get("config_include_keys"), options.get("config_exclude_keys") or ()
    return {
        name: value
        for name, value in settings.items()
        if (not included or name in included) and name not in excluded
    }


def _start(
    foreign: Foreign, given: Mapping[str, Any], labels: Mapping[str, Any], settings: Mapping[str, Any]
) -> _Started:
    """Start or resume a run."""
    connection = {field: given[field] for field in ("url", "token") if field in given}
    rewind = {"rewind_to": given["rewind_to"]} if "rewind_to" in given else {}
    notes = labels.get("notes", "")
    own_id = as_text(given["id"]) if given.get("id") is not None else None
    if given.get("resume_from") is not None:
        if given.get("resume") or (own_id is not None and own_id != _point(given["resume_from"])[0]):
            raise UsageError("resume_from: cannot be combined with resume or another id")
        own_id, step = _point(given["resume_from"])
        run = _found(own_id, labels, connection)
        if run is None:
            raise UsageError(f"resume_from: there is no run {own_id!r}")
        if run["step_unit"] != "iterations" and given.get("step_unit") != "agent_steps":
            raise UsageError(
                f"resume_from: run {run['id']} counts agent steps, not rows: "
                f"pass id={run['id']!r} and rewind_to=AGENT_STEPS"
            )
        return _resumed(run["id"], settings, connection | {"rewind_to": step}, own_id)
    if given.get("fork_from") is not None:
        parent, step = _point(given["fork_from"])
        notes = f"{notes}\n\nForked from run {parent} at its step {step}.".strip()
        foreign.say("init.fork_from", "the run names its parent in its notes, and has none of its points")
    if own_id is not None and RUN_ID.fullmatch(own_id):
        return _resumed(own_id, settings, connection | rewind)
    if own_id is not None:
        earlier = _earlier(foreign, own_id, given.get("resume"), labels, connection)
        if earlier is not None:
            return _resumed(earlier, settings, connection | rewind, own_id)
        notes = f"{notes}\n\nW&B id {own_id}: {_mark(own_id, labels)}".strip()
    elif given.get("resume") not in (None, False, "allow", "never"):
        foreign.say("init.resume without id", "this is a new run: pass the id of the run to resume")
    named = described_by(settings)
    default_algorithm = None
    if "algorithm" not in {**named, **given}:
        default_algorithm = plain_word(_script(), MAX_ALGORITHM)
    tags = [labels.get("entity"), labels.get("job_type"), *labels["tags"]]
    fields: dict[str, Any] = {"algorithm": UNKNOWN, "environment": UNKNOWN} | named
    fields |= {
        "name": as_text(given.get("name") or _script())[:MAX_NAME],
        "project": project_of(labels.get("project", "")),
        "group": labels["group"][:MAX_GROUP] if labels.get("group") else None,
        "tags": [*dict.fromkeys(as_text(tag)[:MAX_TAG] for tag in tags if tag)][:MAX_TAGS],
        "notes": notes[-MAX_NOTES:] or None,
        "config": settings,
    }
    external = start(**fields | {name: given[name] for name in given if name in _OF_START})
    return _Started(external, own_id, default_algorithm)


def _resumed(
    run: str, settings: Mapping[str, Any], options: Mapping[str, Any], own_id: str | None = None
) -> _Started:
    external = start(id=run, **options)
    external.config.update(settings)
    return _Started(external, own_id, has_resumed=True)


def _point(text: Any) -> tuple[str, int]:
    """Run and step of `ID?_step=50`.

    Raises:
        UsageError: it is another text.
    """
    match = _POINT.fullmatch(as_text(text))
    if match is None:
        raise UsageError(f"resume_from, fork_from: must be ID?_step=NUMBER: got {as_text(text)[:80]!r}")
    return match["id"], int(match["step"])


def _mark(own_id: str, labels: Mapping[str, Any]) -> str:
    """What the notes of a run with an id of the script's own end with."""
    return f"wandb-{hashlib.sha256(repr((labels.get('project', ''), own_id)).encode()).hexdigest()[:20]}"


def _earlier(
    foreign: Foreign, own_id: str, resume: Any, labels: Mapping[str, Any], connection: Mapping[str, Any]
) -> str | None:
    """The run that a script resumes by an id of its own; None: it starts a new one.

    Raises:
        UsageError: `resume` demands an earlier run, or that there is none.
    """
    if rank()[1]:
        return None  # another process logs the run
    try:
        run = _found(own_id, labels, connection)
    except (CallboardError, OSError) as error:
        warn(
            "callboard: wandb.init: whether run %r exists is not known, so this is a new run: %s",
            own_id,
            error,
        )
        return None
    if resume == "must" and run is None:
        raise UsageError(f'resume="must": there is no run {own_id!r} in this project')
    if resume == "never" and run is not None:
        raise UsageError(f'resume="never": there is a run {own_id!r} in this project')
    if run is not None and not resume:
        foreign.say("init.id", f"this is another run than {run['id']}: resume='allow' continues that one")
        return None
    return None if run is None else str(run["id"])


def _found(own_id: str, labels: Mapping[str, Any], connection: Mapping[str, Any]) -> dict[str, Any] | None:
    """The latest run of this id, of the server or of the script's own."""
    transport = Transport(find_server(**connection))
    try:
        if RUN_ID.fullmatch(own_id):
            run: dict[str, Any] = transport.request("GET", f"runs/{own_id}")
            return run
        mark = _mark(own_id, labels)
        params = {"filter": f"notes:{mark}", "archived": "all", "limit": 100, "sort": "-created_at"}
        runs = transport.request("GET", "runs", params=params)["items"]
    finally:
        transport.close()
    return next((run for run in runs if (run["notes"] or "").rstrip().endswith(mark)), None)


def _script() -> str:
    return Path(sys.argv[0] if sys.argv else "").stem or "script"
