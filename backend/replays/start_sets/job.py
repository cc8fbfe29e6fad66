"""The job that verifies a start set by replay."""

import json

from sqlalchemy.orm import Session

from backend.db import StartSet
from backend.db.job import VERIFICATION
from backend.fleet.jobs.kinds import Command, JobKind, Options, Output, Result, Written
from backend.platform.artifacts import ArtifactStore
from backend.runs.starts import service
from backend.specs.start_sets import StartSetContent


def _load(session: Session, store: ArtifactStore, set_id: str) -> bytes | None:
    return service.document_of(session, set_id)


def _command(document: bytes) -> Command:
    options: Options = {
        "--document": Written("set.json", document),
        "--out": Output("starts.npz", is_stored=False),
    }
    return Command("start-set", options)


def _record(session: Session, set_id: str, result: Result) -> None:
    report = json.loads(result.answer)
    if report["error"] is not None:
        service.record_mismatch(session, set_id, error=report["error"])
        return
    states = result.files["--out"].content
    assert states is not None
    service.record_verified(session, set_id, StartSetContent.model_validate(report["set"]), states)


KINDS = (JobKind(VERIFICATION, load=_load, command=_command, record=_record, environment_of=StartSet),)
