"""The job that plays continuations of an episode."""

from sqlalchemy.orm import Session

from backend.db import Branch
from backend.db.job import BRANCH
from backend.fleet.jobs.kinds import Command, JobKind, Result, Written
from backend.platform.artifacts import ArtifactStore
from backend.replays.branches import service
from backend.replays.episodes.job import PolicyJob, load_policy_job
from backend.specs.branches import BranchOutcome


def _load(session: Session, store: ArtifactStore, branch_id: str) -> PolicyJob[Branch] | None:
    return load_policy_job(session, store, service.find(session, branch_id))


def _command(job: PolicyJob[Branch]) -> Command:
    plan = service.plan_of(job.row).model_dump_json()
    return job.command("branch", {"--plan": Written("plan.json", plan.encode())})


def _record(session: Session, branch_id: str, result: Result) -> None:
    service.record(session, branch_id, BranchOutcome.model_validate_json(result.answer))


KINDS = (JobKind(BRANCH, load=_load, command=_command, record=_record, rank=0),)
