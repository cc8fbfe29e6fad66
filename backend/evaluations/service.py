"""Evaluations asked for over REST."""

from sqlalchemy.orm import Session

from backend.checkpoints import repository as checkpoints
from backend.db import Evaluation, Job
from backend.errors import Conflict, Invalid
from backend.evaluations import repository
from backend.evaluations.schemas import EvaluationRequest
from backend.jobs import repository as jobs
from backend.runs import repository as run_rows
from backend.runs import service as runs
from backend.specs.run import parse_run_spec

EVALUATION = "evaluation"
"""Kind of the job that evaluates a checkpoint."""


def request(session: Session, run_id: str, asked: EvaluationRequest) -> tuple[Evaluation, Job]:
    """Have a checkpoint of a run scored from fresh starts.

    Raises:
        NotFound: there is no such run.
        Conflict: it has no checkpoint yet.
        Invalid: the checkpoint is not this run's, or the world has no such protocol.
    """
    # Locked: nobody thins its checkpoints out meanwhile.
    run = runs.get(session, run_id, for_update=True)
    own = parse_run_spec(run.spec).world.evaluation_protocol
    if asked.protocol not in (None, own):
        raise Invalid.field("protocol", f"{run.environment} is scored by {own}, not {asked.protocol!r:.60}")
    if asked.checkpoint is None:
        checkpoint = checkpoints.newest(session, run_id)
        if checkpoint is None:
            raise Conflict(f"the run is {run.state} and has no checkpoint to evaluate")
    else:
        checkpoint = checkpoints.get(session, asked.checkpoint)
        if checkpoint is None or checkpoint.run_id != run_id or checkpoint.removed:
            raise Invalid.field("checkpoint", "this run has no such checkpoint")
    evaluation = repository.add_request(
        session, checkpoint, protocol=own, n_episodes=asked.episodes, seed=asked.seed
    )
    job = jobs.request(session, EVALUATION, run_id, evaluation.id, queue=run.queue)
    run_rows.bump_revision(session, run_id)
    return evaluation, job
