"""The commands that train runs again, and what they cannot repeat."""

import json
import shlex
from typing import Any

from backend.db import Run
from backend.runs.runs.groups import configs_of, defaults, defaults_key
from backend.runs.runs.names import are_equal
from backend.specs.fields import ENVIRONMENT_PREFIX
from backend.specs.protocols import starts_protocol

_OPTIONS = {"config": "--set", "environment_config": "--set-environment"}


def command_lines(run: Run) -> list[str]:
    """The command that trains a run of Callboard again, without what is the default; after it, as comments,
    what differs from the run all the same."""
    spec = run.spec
    command = ["callboard", "train", "--algorithm", run.algorithm, "--environment", run.environment]
    for limit in ("agent_steps", "wall_time_s", "score"):
        if (value := spec["stop"].get(limit)) is not None:
            command += [f"--{limit.replace('_', '-')}", f"{value}"]
    known = dict(zip(_OPTIONS, defaults(*defaults_key(spec)), strict=True))
    chosen = configs_of(spec)
    for section, option in _OPTIONS.items():
        for name, value in chosen[section].items():
            is_default = name in known[section] and are_equal(value, known[section][name])
            if not is_default and not _needs_starts(value):
                command += [option, f"{name}={_as_text(value)}"]
    command += ["--seed", str(run.seed)]
    if (device := spec.get("device", "auto")) != "auto":
        command += ["--device", device]
    return [shlex.join(command), *(f"# {text}" for text in _not_repeated(run, chosen["config"]))]


def _not_repeated(run: Run, config: dict[str, Any]) -> list[str]:
    """What of a run the command does not repeat."""
    spec, texts = run.spec, []
    if spec.get("package"):
        texts.append(f"needs the package {spec['package']}")
    if run.environment.startswith(ENVIRONMENT_PREFIX):
        texts.append(f"needs the environment {run.environment} in the file of environments")
    if run.parent_id is not None:
        texts.append(
            f"not repeated: the run continued run {run.parent_id} from {run.forked_at_agent_steps or 0:,} "
            "agent steps"
        )
    if (annealing := spec.get("annealing_agent_steps")) is not None:
        texts.append(f"not repeated: the learning rate fell to 0 over {annealing:,} agent steps")
    protocol = config.get("evaluation_protocol")
    if _needs_starts(protocol):
        texts.append(f"not repeated: evaluations under {protocol}, whose start set belongs to a server")
    texts += [f"not repeated: {name} {change}" for name, change in (run.departures or {}).items()]
    return texts


def _needs_starts(value: Any) -> bool:
    return isinstance(value, str) and starts_protocol(value) is not None


def _as_text(value: Any) -> str:
    """A value as an option has it: text stands as it is, unless it could be JSON."""
    if not isinstance(value, str):
        return json.dumps(value)
    try:
        json.loads(value)
    except ValueError:
        return value
    return json.dumps(value)
