"""The job that evaluates a checkpoint on a user's request."""

import json
from dataclasses import dataclass

from sqlalchemy.orm import Session

from backend.db import Evaluation, Run
from backend.db.job import EVALUATION
from backend.fleet.jobs.kinds import Command, JobKind, Options, Result, Stored, TargetDeleted, Written
from backend.platform.artifacts import ArtifactStore
from backend.runs.checkpoints import service as checkpoints
from backend.runs.evaluations import service
from backend.runs.runs import service as runs
from backend.runs.starts import service as starts
from backend.specs.run import parse_run_spec


@dataclass(frozen=True)
class EvaluationJob:
    """What is evaluated."""

    evaluation: Evaluation
    run: Run
    checkpoint: Stored
    starts: dict[str, Written]


def _load(session: Session, store: ArtifactStore, evaluation_id: str) -> EvaluationJob:
    evaluation = service.find(session, evaluation_id)
    run = None if evaluation is None else runs.find(session, evaluation.run_id)
    if evaluation is None or run is None:
        raise TargetDeleted
    of_starts = starts.engine_options(session, evaluation.protocol)
    checkpoint = checkpoints.stored_file(session, run.id, evaluation.checkpoint)
    return EvaluationJob(evaluation, run, checkpoint, of_starts)


def _command(job: EvaluationJob) -> Command:
    evaluation = job.evaluation
    options: Options = {
        "--checkpoint": job.checkpoint,
        "--protocol": evaluation.protocol,
        "--episodes": str(evaluation.n_episodes),
        "--seed": str(evaluation.seed),
        **job.starts,
    }
    return Command("evaluate", options, parse_run_spec(job.run.spec))


def _record(session: Session, evaluation_id: str, result: Result) -> None:
    scores = json.loads(result.answer)
    service.record_returns(
        session,
        evaluation_id,
        returns=scores["returns"],
        lengths_frames=scores["lengths_frames"],
        mean_return=scores["mean_return"],
    )


# Last, because an evaluation may take an hour.
KINDS = (JobKind(EVALUATION, load=_load, command=_command, record=_record, rank=3),)
