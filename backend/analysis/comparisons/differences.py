"""What differs between two runs: settings, live changes, code, packages, host and command."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.orm import Session

from backend.analysis.comparisons.schemas import (
    DifferentRun,
    FactDifference,
    LiveChange,
    PackageDifference,
    PatchDifference,
    RunDifferences,
    SettingDifference,
)
from backend.analysis.metrics import service as metrics
from backend.db import Run
from backend.platform.errors import Invalid
from backend.runs.live_settings import repository as live_settings
from backend.runs.runs import repository
from backend.runs.runs.fields import config_fields
from backend.runs.runs.groups import configs_of
from backend.runs.runs.names import are_equal, names_of_runs
from backend.specs.run_fields import EXTERNAL

MAX_FILES = 100
"""Files of which patches are compared."""
MAX_FILE_CHARACTERS = 32_768
"""Of the patch of one file, in each run."""
_NAMED_SETTINGS = 5
_TOP = ("algorithm", "environment", "seed", "device", "annealing_agent_steps", "package", "custom")
"""What else of a specification training depends on."""
_FILE = re.compile(r"^diff --git ", re.MULTILINE)
_MISSING = object()


@dataclass(frozen=True)
class _Origin:
    """Where a run came from."""

    code: Mapping[str, str]
    """By what it is called; so are the others."""
    host: Mapping[str, str]
    command: Mapping[str, str]
    packages: Mapping[str, str]
    patch: Mapping[str, str] = field(default_factory=dict)
    """File -> how it differed from the commit."""
    unknown: Sequence[str] = ()
    """What of this was not recorded."""


def compare_two(session: Session, first: str, second: str) -> RunDifferences:
    """What differs between two runs.

    Raises:
        NotFound: there is no such run.
        Invalid: they are the same.
    """
    if first == second:
        raise Invalid.field("run", "both runs are the same: choose two")
    pair = list(metrics.find_runs(session, [first, second]).values())
    origins = [_origin(session, run) for run in pair]
    specs = [_settings(run) for run in pair]
    paths = list(dict.fromkeys([*specs[0], *specs[1]]))
    differing = [path for path in paths if not _equal(*(spec.get(path, _MISSING) for spec in specs))]
    config = [
        SettingDifference(
            path=path,
            title=_title(path),
            a=specs[0].get(path),
            b=specs[1].get(path),
            has_a=path in specs[0],
            has_b=path in specs[1],
        )
        for path in differing
    ]
    a, b = origins
    packages = [
        PackageDifference(name=name, a=a.packages.get(name), b=b.packages.get(name))
        for name in sorted({*a.packages, *b.packages}, key=str.casefold)
        if a.packages and b.packages and a.packages.get(name) != b.packages.get(name)
    ]
    changed_files = [file for file in {**a.patch, **b.patch} if a.patch.get(file) != b.patch.get(file)]
    result = RunDifferences(
        runs=[
            DifferentRun(
                id=run.id,
                name=name,
                origin=run.origin,
                algorithm=run.algorithm,
                environment=run.environment,
                seed=run.seed,
            )
            for run, name in zip(pair, names_of_runs(pair).names, strict=True)
        ],
        summary="",
        config=config,
        n_equal_settings=len(paths) - len(differing),
        live_changes=[change for run in pair for change in _live_changes(session, run)],
        code=_facts(a.code, b.code),
        patch=[
            _file_difference(file, a.patch.get(file), b.patch.get(file)) for file in changed_files[:MAX_FILES]
        ],
        n_more_files=max(0, len(changed_files) - MAX_FILES),
        packages=packages,
        n_equal_packages=sum(a.packages[name] == b.packages.get(name) for name in a.packages),
        host=_facts(a.host, b.host),
        command=_facts(a.command, b.command),
        unknown=[
            f"{run.name}: {what}"
            for run, origin in zip(pair, origins, strict=True)
            for what in origin.unknown
        ],
    )
    return result.model_copy(update={"summary": _summary(result)})


def _summary(result: RunDifferences) -> str:
    names = [setting.title for setting in result.config]
    parts = names[:_NAMED_SETTINGS]
    if len(names) > _NAMED_SETTINGS:
        parts.append(f"{len(names) - _NAMED_SETTINGS} more settings")
    if result.live_changes:
        parts.append(_counted(len(result.live_changes), "live change"))
    if result.code or result.patch:
        parts.append("code")
    if result.packages:
        parts.append(_counted(len(result.packages), "package"))
    parts += [what for what, facts in (("host", result.host), ("command", result.command)) if facts]
    return f"Same except: {', '.join(parts)}" if parts else "No difference is recorded"


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'s' if n != 1 else ''}"


def _settings(run: Run) -> dict[str, Any]:
    """The settings of a run by path, with the defaults of those that are newer than the run."""
    spec = run.spec
    configs = configs_of(spec)
    settings = {name: spec[name] for name in _TOP if spec.get(name) is not None}
    for section, values in (*configs.items(), ("stop", spec.get("stop") or {})):
        settings |= {f"{section}.{name}": value for name, value in values.items()}
    if run.origin == EXTERNAL:
        # How its environment is set up is not known.
        settings = {
            path: value for path, value in settings.items() if not path.startswith("environment_config")
        }
    return settings


def _title(path: str) -> str:
    """What a setting is called; of an external run, its own name."""
    if path in _TOP:
        return path.replace("_", " ").capitalize()
    known = config_fields().get(path)
    return known.title if known else path.removeprefix("config.")


def _equal(value: Any, other: Any) -> bool:
    if value is _MISSING or other is _MISSING:
        return False
    return are_equal(value, other)


def _live_changes(session: Session, run: Run) -> list[LiveChange]:
    """The changes of its settings that took effect, in the order of training."""
    changes = [
        row for row in live_settings.all_versions(session, run.id) if row.state == live_settings.APPLIED
    ]
    return [
        LiveChange(
            run=run.id,
            agent_steps=row.agent_steps,
            path=f"config.{name}",
            title=_title(f"config.{name}"),
            value=value,
        )
        for row in reversed(changes)
        for name, value in row.changes.items()
    ]


def _origin(session: Session, run: Run) -> _Origin:
    return _of_script(session, run) if run.origin == EXTERNAL else _of_engine(session, run)


def _of_engine(session: Session, run: Run) -> _Origin:
    """Of the latest attempt that has reported where it came from."""
    attempts = [row for row in repository.attempts(session, run.id) if row.provenance is not None]
    if not attempts:
        return _Origin({}, {}, {}, {}, unknown=["no attempt has reported its code, packages and host"])
    provenance = attempts[-1].provenance or {}
    is_changed = provenance.get("dirty")
    host = {
        "Host": attempts[-1].host,
        "Processor": provenance["processor"],
        "Cores": str(provenance["cpu_count"]),
        "GPUs": ", ".join(provenance["gpus"]),
        "Device": provenance.get("device"),
        "Rollout workers": _text(provenance.get("rollout_workers")),
    }
    code = {
        "Callboard": provenance["version"],
        "Commit": provenance.get("commit"),
        "Changed files": _yes_or_no(is_changed),
    }
    unknown = ["how its code differed from the commit is not recorded"] if is_changed else []
    command = {"Command": shlex.join(provenance["command"])}
    return _Origin(_known(code), _known(host), command, provenance["packages"], unknown=unknown)


def _of_script(session: Session, run: Run) -> _Origin:
    """Of the latest process that has reported where it came from."""
    processes = [row for row in repository.processes(session, run.id) if row.provenance]
    if not processes:
        return _Origin({}, {}, {}, {}, unknown=["its script has not reported its code, packages and host"])
    process = processes[-1]
    provenance = process.provenance
    code = {
        "Python": provenance.get("python"),
        "Commit": provenance.get("commit"),
        "Changed files": _yes_or_no(provenance.get("dirty")),
    }
    host = {"Host": provenance.get("host")} | dict(provenance.get("variables") or {})
    unknown = []
    if len(processes) > 1:
        unknown.append(f"{len(processes)} processes have logged to it; this is the latest")
    return _Origin(
        _known(code),
        _known(host),
        _known({"Command": shlex.join(provenance.get("command") or [])}),
        provenance.get("packages") or {},
        _files(process.diff),
        unknown,
    )


def _files(patch: str) -> dict[str, str]:
    """The patch of each file."""
    starts = [match.start() for match in _FILE.finditer(patch)]
    files = {}
    for start, end in zip(starts, [*starts[1:], len(patch)], strict=True):
        part = patch[start:end]
        head = part.partition("\n")[0]
        files[head.rpartition(" b/")[2] or head] = part
    return files or ({"": patch} if patch.strip() else {})


def _file_difference(file: str, a: str | None, b: str | None) -> PatchDifference:
    cut = [None if text is None else text[:MAX_FILE_CHARACTERS] for text in (a, b)]
    return PatchDifference(
        file=file, a=cut[0], b=cut[1], is_cut=any(len(text or "") > MAX_FILE_CHARACTERS for text in (a, b))
    )


def _facts(a: Mapping[str, str], b: Mapping[str, str]) -> list[FactDifference]:
    """What differs; what neither of two known origins has is left out."""
    if not a or not b:
        return []
    return [
        FactDifference(name=name, a=a.get(name), b=b.get(name))
        for name in dict.fromkeys([*a, *b])
        if a.get(name) != b.get(name)
    ]


def _known(facts: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in facts.items() if value}


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _yes_or_no(value: bool | None) -> str | None:
    return None if value is None else "yes" if value else "no"
