"""Requested evaluations."""

from sqlalchemy.orm import Session

from backend.checkpoints import repository as checkpoints
from backend.db import Evaluation, Job
from backend.errors import Conflict, Invalid
from backend.evaluations import repository
from backend.evaluations.schemas import EvaluationRequest, ProtocolOut, Protocols
from backend.jobs import repository as jobs
from backend.runs import external
from backend.runs import repository as run_rows
from backend.runs import service as runs
from backend.specs.protocols import UnsupportedProtocolError, protocols_of

EVALUATION = "evaluation"
"""Kind of the job that evaluates a checkpoint."""


def request(session: Session, run_id: str, body: EvaluationRequest) -> tuple[Evaluation, Job]:
    """Queue the evaluation of a checkpoint.

    Raises:
        NotFound: there is no such run.
        Conflict: the run is external, or has no checkpoint yet.
        Invalid: the checkpoint is not of this run, or the environment cannot be evaluated so.
    """
    # Locked, so that the checkpoint is not removed in the meantime.
    run = runs.get(session, run_id, for_update=True)
    spec = external.trainable_spec(run, "evaluate")
    protocol = body.protocol or spec.evaluation_protocol
    try:
        spec.catalogue_environment.protocol(protocol)
    except UnsupportedProtocolError as error:
        raise Invalid.field("protocol", str(error)) from None
    if body.checkpoint is None:
        checkpoint = checkpoints.latest(session, run_id)
        if checkpoint is None:
            raise Conflict(f"the run is {run.state} and has no checkpoint to evaluate")
    else:
        checkpoint = checkpoints.get(session, body.checkpoint)
        if checkpoint is None or checkpoint.run_id != run_id or checkpoint.removed:
            raise Invalid.field(
                "checkpoint", "this run has no such checkpoint; without one, the latest is evaluated"
            )
    evaluation = repository.add_request(
        session, checkpoint, protocol=protocol, n_episodes=body.episodes, seed=body.seed
    )
    job = jobs.request(session, EVALUATION, run_id, evaluation.id, queue=run.queue)
    run_rows.bump_revision(session, run_id)
    return evaluation, job


def protocols(session: Session, run_id: str) -> Protocols:
    """The protocols of a run's environment, and the one of the run's own evaluations.

    Raises:
        NotFound: there is no such run.
        Conflict: it is an external run.
    """
    spec = external.trainable_spec(runs.get(session, run_id), "evaluate")
    items = [
        ProtocolOut.model_validate(protocol.model_dump(exclude={"environment_settings", "greedy"}))
        for protocol in protocols_of(spec.catalogue_environment.protocols)
    ]
    return Protocols(default=spec.evaluation_protocol, items=items)
