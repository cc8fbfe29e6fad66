"""External runs, trained elsewhere: what their scripts report later, and what nobody can do with them."""

from typing import Any, Literal

from pydantic import BaseModel
from sqlalchemy.orm import Session

from backend.db import Run
from backend.db.clock import database_now
from backend.platform.errors import Conflict
from backend.platform.text import UNSTORABLE, unstorable_paths
from backend.runs.runs import service
from backend.runs.runs.external_spec import (
    REFUSALS,
    UNKNOWN,
    ExternalFields,
    default_name,
    external_spec,
    seed_in,
)
from backend.specs.problems import FieldProblem, InvalidSpec
from backend.specs.run import RunSpec
from backend.specs.run_fields import EXTERNAL

HEARTBEAT_S = 60.0
"""Time without a request of its script after which an external run is lost."""


def silent_s(session: Session, run: Run) -> float | None:
    """Time since the script of an external run has sent anything; None if the run does not run, or if a
    worker knows better."""
    if run.lease_expires_at is None or run.runs_here:
        return None
    return max(0.0, HEARTBEAT_S - (run.lease_expires_at - database_now(session)).total_seconds())


def require_storable(fields: BaseModel) -> None:
    """Check the names and texts of settings, which no model bounds.

    Raises:
        InvalidSpec: some cannot be stored.
    """
    # Not as JSON, which has other characters in the place of unpaired surrogates in names.
    if unstorable := unstorable_paths(fields.model_dump()):
        raise InvalidSpec([FieldProblem(field=path, message=UNSTORABLE) for path in unstorable])


def describe(run: Run, changes: dict[str, Any]) -> None:
    """Store what the script of a locked run reports later: its config, and what was not known before.

    Args:
        run: an external run.
        changes: `config` and `config_details`, which are merged into those of the run; `return_metric` and
            `step_unit`; `algorithm`, `environment` and `seed`, unless they are known already. A seed that
            only the config has named follows the config.

    Raises:
        InvalidSpec: with one problem per invalid field; nothing is changed.
    """
    spec = run.spec
    config = changes.get("config") or {}
    details = {name: detail for name, detail in spec.get("config_details", {}).items() if name not in config}
    body = {name: spec.get(name) for name in ExternalFields.model_fields if name in spec}
    seed, is_given = _seed(spec, config, changes.get("seed"))
    body |= {
        "config": spec["config"] | config,
        "config_details": details | (changes.get("config_details") or {}),
        "seed": seed,
    }
    for name in ("algorithm", "environment"):
        if spec[name] == UNKNOWN and changes.get(name):
            body[name] = changes[name]
    # The id in a folder's name, as of `runs/ALE/Pong-v5__ppo__1`, lacks its namespace.
    if (changes.get("environment") or "").endswith(f"/{spec['environment']}"):
        body["environment"] = changes["environment"]
    body |= {name: changes[name] for name in ("return_metric", "step_unit") if changes.get(name)}
    changed = external_spec(ExternalFields.model_validate(body), spec) | {"seed_is_given": is_given}
    if run.name == default_name(spec):
        run.name = default_name(changed)
    run.spec = spec | {
        name: changed[name] for name in changed if name not in ("tags", "notes", "name", "group", "project")
    }
    run.algorithm, run.environment, run.seed = (
        changed[name] for name in ("algorithm", "environment", "seed")
    )


def _seed(spec: dict[str, Any], config: dict[str, Any], seed: int | None) -> tuple[int | None, bool]:
    """The seed of a run whose script reports settings and perhaps a seed, and whether it was given as such.

    A seed that only a config names, or that is given beside an equal one in it, was not given as such: it
    follows the config, and a seed that is reported later is ignored.
    """
    known = spec["seed"] if spec.get("seed_is_known", True) else None
    is_given = known is not None and spec.get("seed_is_given", True)
    named = None if is_given else seed_in(spec["config"] | config)
    if known is None and seed not in (None, named):
        return seed, True
    if named is not None:
        return named, False
    return (known, is_given) if known is not None else (seed, seed is not None)


def trainable_spec(
    run: Run, action: Literal["fork", "evaluate", "export", "change the settings of", "repeat"]
) -> RunSpec:
    """The specification of a run of Callboard's own.

    Raises:
        Conflict: the run is an external one, which Callboard cannot do this with, or cannot be read.
    """
    refuse(run, action)
    return service.spec_of(run)


def refuse(run: Run, action: str) -> None:
    """Refuse an action that external runs do not have.

    Raises:
        Conflict: the run is an external one, and no host's command that a worker could start or kill.
    """
    if run.origin == EXTERNAL and not (run.runs_here and action in ("resume", "kill")):
        raise Conflict(f"the run is trained elsewhere: {REFUSALS[action]}")
