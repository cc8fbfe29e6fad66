"""The job that computes a saliency map."""

from sqlalchemy.orm import Session

from backend.db import StoredSaliency
from backend.db.job import SALIENCY
from backend.fleet.jobs.kinds import Command, JobKind, Result
from backend.platform.artifacts import ArtifactStore
from backend.replays.episodes.job import PolicyJob, load_policy_job
from backend.replays.saliency import service
from backend.specs.saliency import SaliencyMap


def _load(session: Session, store: ArtifactStore, map_id: str) -> PolicyJob[StoredSaliency] | None:
    return load_policy_job(session, store, service.find(session, map_id))


def _command(job: PolicyJob[StoredSaliency]) -> Command:
    return job.command("saliency", {"--decision": str(job.row.decision)})


def _record(session: Session, map_id: str, result: Result) -> None:
    service.record(session, map_id, SaliencyMap.model_validate_json(result.answer))


KINDS = (JobKind(SALIENCY, load=_load, command=_command, record=_record, rank=0),)
