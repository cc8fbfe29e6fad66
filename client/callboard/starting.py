"""Starts or resumes a run that a script trains: `callboard.init`.

It is separate from `external` since it runs once, before there is a run to log to: it checks the arguments,
finds the server and creates the spool.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, SupportsIndex

import httpx

from callboard.cleaning import as_steps, kind_of, shown
from callboard.config import FlatConfig, flat_config
from callboard.delivery import REFUSES_START, create_run
from callboard.errors import Rejected, Unreachable
from callboard.external import ExternalRun
from callboard.limits import (
    MAX_ALGORITHM,
    MAX_ENVIRONMENT,
    MAX_GROUP,
    MAX_NAME,
    MAX_NOTES,
    MAX_PROJECT,
    MAX_TAG,
    MAX_TAGS,
)
from callboard.manifest import Manifest
from callboard.names import Names, is_project, is_storable
from callboard.ranks import SilentRun, rank
from callboard.rows import dumps, items, run_id_of, seed_of, text
from callboard.spool import MAX_REQUEST_BYTES, Spool, new_ulid
from callboard.syncing import waiting_steps
from callboard.transport import Transport, find_server

_MEMORY = Path("/dev/shm")  # noqa: S108 - the spool is in a folder of its own below
"""A folder in memory, which has room where every disk is full."""
RUN_VARIABLE = "CALLBOARD_RUN"
"""Variable with the run of a script that Callboard itself has started; its token writes no other."""
RECORDS = True
"""Whether runs record where their scripts come from, unless `init(record=False)`."""
_WORD = re.compile(r'[^"\\\x00-\x1f]+')

log = logging.getLogger("callboard")


def init(
    name: str | None = None,
    *,
    algorithm: str | None = None,
    environment: str | None = None,
    config: Mapping[str, Any] | object | None = None,
    seed: SupportsIndex | float | str | None = None,
    project: str | None = None,
    group: str | None = None,
    tags: Iterable[str] = (),
    notes: str | None = None,
    return_metric: str | None = None,
    step_unit: str | None = None,
    id: str | None = None,
    rewind_to: SupportsIndex | float | None = None,
    record: bool = True,
    url: str | None = None,
    token: str | None = None,
) -> ExternalRun:
    """Start a run that this script trains, or resume one.

    A process with a rank above 0, as `torchrun`, Slurm and MPI number them, logs nothing unless it passes
    `id`: that of rank 0 does.

    In a script that Callboard itself has started, as a host's command, it writes the run of that start, which
    has its name, project, group, tags and notes already.

    If the server cannot be reached, everything is kept in the spool and sent later, the creation of the run
    included. Else the address of the run's page is printed to the standard error.

    Args:
        name: name of the run; default: from algorithm and environment.
        algorithm: name of the method, such as `my_ppo`.
        environment: id of the environment, such as `ALE/Pong-v5`. Runs of the same environment are compared.
        config: hyperparameters: a mapping, or an object with attributes such as `argparse.Namespace`. Nested
            mappings become dotted names.
        seed: seed of the run: a whole number from 0 to 2**63 - 1.
        project: project that the run is filed under; default: `default`.
        group: name of a group to put the run into.
        tags: words to find and filter the run by.
        notes: free text, in Markdown.
        return_metric: the metric by which the run is scored; default: the returns of `run.episode`, or a
            metric of a known library, such as `rollout/ep_rew_mean`.
        step_unit: `agent_steps`, or `iterations` if that is what the script passes as `agent_steps`; default:
            agent steps, unless the metrics are those of a library that counts iterations.
        id: id of an external run to resume, instead of all of the above.
        rewind_to: with `id`, or in a script that Callboard has started: agent steps of the checkpoint from
            which this script continues. Later points of the run are kept aside, and no chart draws them.
        record: whether to record where the script comes from (host, command without secrets, Python,
            packages, commit with changes), the end of what it prints, and the CPU, memory and GPU that it
            uses. The server's installation may have turned that off.
        url: address of the server; default: `CALLBOARD_URL`, else this machine's installation.
        token: API token; default: `CALLBOARD_TOKEN`, else that of this machine's installation.

    Raises:
        ValueError: an argument, address or token that cannot be used. Never because of the network.
        OSError: no folder for the spool can be written.
    """
    if id is None and rank()[1]:
        return SilentRun(name or f"{algorithm} {environment}", _settings(config).config)
    server = find_server(url, token)
    source = new_ulid()
    learnt: dict[str, Any] | None = None
    started = os.environ.get(RUN_VARIABLE, "").strip()
    if started and id is None and url is None and token is None:
        settings = _settings(config)
        learnt = {
            "config": settings.config,
            "config_details": settings.details,
            "algorithm": algorithm and _word("algorithm", algorithm, MAX_ALGORITHM),
            "environment": environment and _word("environment", environment, MAX_ENVIRONMENT),
            "seed": None if seed is None else seed_of(seed),
            "return_metric": None if return_metric is None else Names().stored(return_metric),
            "step_unit": step_unit,
        }
        manifest = Manifest(source, server.url, run_id_of(started), None, name or started, _rewind(rewind_to))
    elif id is not None:
        others = (name, algorithm, environment, config, seed, project, group, notes, return_metric, step_unit)
        id = run_id_of(id)
        if any(other is not None for other in others) or (tags is not None and _tags(tags)):
            raise ValueError("id: cannot be combined with other arguments about the run, which exists")
        manifest = Manifest(source, server.url, id, None, id, _rewind(rewind_to))
    else:
        if rewind_to is not None:
            raise ValueError("rewind_to: needs id, of the run that continues")
        if step_unit not in (None, "agent_steps", "iterations"):
            raise ValueError(f"step_unit: must be agent_steps or iterations: got {shown(step_unit)}")
        settings = _settings(config)
        create: dict[str, Any] = {
            "origin": "external",
            "name": None if name is None else text("name", name, MAX_NAME),
            "algorithm": _word("algorithm", algorithm, MAX_ALGORITHM),
            "environment": _word("environment", environment, MAX_ENVIRONMENT),
            "config": settings.config,
            "config_details": settings.details,
            "seed": None if seed is None else seed_of(seed),
            "group": None if group is None else text("group", group, MAX_GROUP),
            "tags": _tags(tags),
            **({} if project is None else {"project": _project(project)}),
            "notes": None if notes is None else text("notes", notes, MAX_NOTES, empty=True),
            "return_metric": None if return_metric is None else Names().stored(return_metric),
            "step_unit": step_unit,
        }
        n_bytes = len(dumps(create))
        if n_bytes > MAX_REQUEST_BYTES:
            raise ValueError(
                f"config: must have at most {MAX_REQUEST_BYTES:,} bytes as JSON: got {n_bytes:,}"
            )
        default_name = f"{create['algorithm']} {create['environment']}"
        manifest = Manifest(source, server.url, None, create, create["name"] or default_name)
    transport = Transport(server)
    try:
        run = _start(transport, manifest, record=bool(record) and RECORDS)
    except Exception:
        transport.close()
        raise
    if learnt is not None:
        run.learn(learnt)
    return run


def _start(transport: Transport, manifest: Manifest, *, record: bool) -> ExternalRun:
    spool = _create_spool(manifest)
    before: dict[str, Any] = {}
    try:
        with suppress(Unreachable):
            if manifest.run is None:
                run_id, records = create_run(transport, manifest)
                before = {"records_scripts": records}
                _store(spool, replace(manifest, run=run_id))
            else:
                # What an earlier process has left is sent first: only then is the run rewound for good.
                body: dict[str, Any] = {"state": "running", "resume": True}
                if manifest.rewind_to is not None:
                    body |= {"rewind_to": manifest.rewind_to}
                answer = transport.request("POST", f"runs/{manifest.run}/heartbeat", body=body)
                before = transport.validate_answer(answer, state=str, agent_steps=int, wall_time_s=float)
                before |= _read(transport, manifest.run)
                _store(spool, replace(manifest, name=before.get("name") or manifest.name))
    except Rejected as error:
        if (error.status, error.code) in REFUSES_START:
            spool.remove()
            raise
        log.warning("callboard: %s; what is logged is kept in %s", error, spool.folder)
    agent_steps = int(before.get("agent_steps") or manifest.rewind_to or 0)
    if manifest.run is not None and manifest.rewind_to is None:
        agent_steps = max(agent_steps, waiting_steps(manifest.run))
    run = ExternalRun(
        spool,
        transport,
        wall_time_s=float(before.get("wall_time_s") or 0.0),
        agent_steps=agent_steps,
        config=manifest.create["config"] if manifest.create else before.get("spec", {}).get("config"),
        counts_iterations=(manifest.create or before).get("step_unit") == "iterations",
        record=record and before.get("records_scripts") is not False,
    )
    if run.url is not None:
        with suppress(Exception):  # of a stream of the script's own
            sys.stderr.write(f"callboard: {run.name}: {run.url}\n")
    return run


def _create_spool(manifest: Manifest) -> Spool:
    """A new spool: in the folder of all spools, else in a temporary folder, else in memory.

    Raises:
        OSError: none of them can be written.
    """
    try:
        return Spool.create(manifest)
    except OSError as error:
        problems = [str(error)]
    parents: list[Path | None] = [None, *([_MEMORY] if _MEMORY.is_dir() else [])]
    for parent in parents:
        root: Path | None = None
        try:
            root = Path(tempfile.mkdtemp(prefix="callboard-spool-", dir=parent))
            spool = Spool.create(manifest, root)
        except OSError as error:
            problems.append(str(error))
            if root is not None:
                shutil.rmtree(root, ignore_errors=True)
        else:
            log.warning("callboard: %s; what is not sent is kept in %s", "; ".join(problems), root)
            return spool
    raise OSError(
        f"what is logged can be kept nowhere: {'; '.join(problems)}: free some space, or set CALLBOARD_HOME "
        "to a folder that can be written"
    )


def _store(spool: Spool, manifest: Manifest) -> None:
    """Store the id and the name of the run in its spool. If that fails, the thread that sends creates the
    run again, with the same idempotency key, and stores its id."""
    try:
        spool.set_manifest(manifest)
    except OSError as error:
        log.warning("callboard: run %s: its id and name cannot be stored: %s", manifest.run, error)


def _read(transport: Transport, run_id: str) -> dict[str, Any]:
    """The run as the server has it; empty if the token may only write."""
    try:
        answer = transport.request("GET", f"runs/{run_id}")
    except Rejected as error:
        if error.status != httpx.codes.FORBIDDEN:
            raise
        return {}
    return transport.validate_answer(answer, id=str, name=str, wall_time_s=float, agent_steps=int, spec=dict)


def _settings(config: Any) -> FlatConfig:
    """A config as flat JSON.

    Raises:
        ValueError: it is not a config, has too many fields, or cannot be read.
    """
    try:
        return flat_config(config)
    except ValueError:
        raise
    except Exception as error:  # of any object
        raise ValueError(f"config: cannot be read: {kind_of(config)} raises {kind_of(error)}") from None


def _rewind(agent_steps: Any) -> int | None:
    """Agent steps to continue from.

    Raises:
        ValueError: they are not a whole number that the server accepts.
    """
    if agent_steps is None:
        return None
    steps, kind = as_steps(agent_steps)
    if steps is None or kind:
        raise ValueError(f"rewind_to: must be agent steps from 0 to 10**15: got {shown(agent_steps)}")
    return steps


def _tags(tags: Iterable[str]) -> list[str]:
    given = [text("tags", tag, MAX_TAG) for tag in items("tags", tags, '["baseline"]', MAX_TAGS)]
    for tag in given:
        if not is_storable(tag):
            raise ValueError(f"tags: must have no control characters, such as a line's end: got {shown(tag)}")
    return given


def _project(project: str) -> str:
    name = text("project", project, MAX_PROJECT)
    if not is_project(name):
        raise ValueError(
            "project: must not contain double quotes, backslashes or control characters, nor begin with a "
            f"dot or a blank, nor end with a blank: got {shown(name)}"
        )
    return name


def _word(argument: str, value: str | None, most: int) -> str:
    if value is None:
        raise ValueError(f"{argument}: missing; name the run's {argument}")
    word = text(argument, value, most)
    if not _WORD.fullmatch(word):
        raise ValueError(f"{argument}: must not contain quotes, backslashes or control characters")
    return word
