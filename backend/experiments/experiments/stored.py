"""The specifications of stored experiments. A damaged one must not break a list, and starts nothing."""

from collections.abc import Mapping
from typing import Any, get_args

from pydantic import ValidationError
from sqlalchemy import event
from sqlalchemy.orm.attributes import set_committed_value

from backend.db import Experiment
from backend.db.checked_json import DAMAGED, UnreadableSpec
from backend.db.experiment import ExperimentState
from backend.experiments.specs.study import StudySpec
from backend.experiments.specs.sweep import SweepSpec

_STAND_INS: dict[str, dict[str, Any]] = {
    "sweep": {"run": {"algorithm": "", "environment": ""}, "space": {"config.unknown": {"values": [None]}}},
    "study": {
        "arms": [{"label": "unknown", "algorithm": ""}],
        "environments": [""],
        "draws": {"n": 1},
        "custom": {},
    },
}


def study_spec(stored: Mapping[str, Any]) -> StudySpec:
    """The specification of a stored study.

    Raises:
        ValidationError: it is damaged.
    """
    return StudySpec.model_validate({name: value for name, value in stored.items() if name != "custom"})


def is_whole(row: Mapping[str, Any]) -> bool:
    """Whether the specification of an experiment's row can be read."""
    spec = row["spec"]
    try:
        if row["kind"] == "sweep":
            SweepSpec.model_validate(spec)
            return True
        study_spec(spec)
    except (AttributeError, ValidationError):
        return False
    return isinstance(spec.get("custom") or {}, dict)


CHECKS = {Experiment.__tablename__: is_whole}
"""By table: for backups, which name damaged rows."""


@event.listens_for(Experiment, "load")
@event.listens_for(Experiment, "refresh")
def _replace_damaged(experiment: Experiment, *context: Any) -> None:
    """Show a damaged row as stopped and of no algorithm."""
    loaded = experiment.__dict__
    has_spec = "spec" not in loaded or is_whole(loaded)
    if not has_spec:
        spec = {"name": loaded.get("name"), "notes": ""} | _STAND_INS[loaded["kind"]]
        set_committed_value(experiment, "spec", UnreadableSpec(spec, DAMAGED))
    if not has_spec or ("state" in loaded and loaded["state"] not in get_args(ExperimentState)):
        set_committed_value(experiment, "state", "stopped")
        set_committed_value(experiment, "state_reason", DAMAGED)
