"""The job that exports the agent of a checkpoint."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from backend.analysis.agents import service
from backend.db import Run, StoredAgent
from backend.db.job import AGENT
from backend.fleet.jobs.kinds import Command, JobKind, Output, Result, Stored, Written
from backend.platform.artifacts import ArtifactStore, agent_file
from backend.runs.checkpoints import service as checkpoints
from backend.runs.runs import service as runs
from backend.specs.agents import AgentCard
from backend.specs.run import parse_run_spec


@dataclass(frozen=True)
class AgentJob:
    """What is exported."""

    agent: StoredAgent
    run: Run
    checkpoint: Stored


def _load(session: Session, store: ArtifactStore, agent_id: str) -> AgentJob | None:
    agent = service.find(session, agent_id)
    run = None if agent is None else runs.find(session, agent.run_id)
    if agent is None or run is None:
        return None
    return AgentJob(agent, run, checkpoints.stored_file(session, run.id, agent.checkpoint))


def _command(job: AgentJob) -> Command:
    card = AgentCard.model_validate(job.agent.card).model_dump_json()
    return Command(
        "export-agent",
        {
            "--checkpoint": job.checkpoint,
            "--card": Written("card.json", card.encode()),
            "--format": job.agent.format,
            "--out": Output(agent_file(job.agent.id)),
        },
        parse_run_spec(job.run.spec),
    )


def _record(session: Session, agent_id: str, result: Result) -> None:
    file = result.files["--out"]
    service.record(session, agent_id, sha256=file.sha256, n_bytes=file.n_bytes)


KINDS = (JobKind(AGENT, load=_load, command=_command, record=_record),)
