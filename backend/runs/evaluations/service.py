"""Evaluations of checkpoints: requested by users, or made by the run's own engine."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from backend.db import Evaluation, Job
from backend.db.base import new_id
from backend.db.clock import database_now
from backend.db.job import EVALUATION
from backend.fleet.jobs import repository as job_rows
from backend.fleet.jobs import service as jobs
from backend.platform.errors import Conflict, Invalid, TooMany
from backend.runs.checkpoints import repository as checkpoints
from backend.runs.evaluations import repository
from backend.runs.runs import external
from backend.runs.runs import service as runs
from backend.runs.starts import service as starts
from backend.specs.events import EvaluationEvent
from backend.specs.protocols import UnsupportedProtocolError

MAX_WAITING = 5_000
MAX_WAITING_OF_USER = 1_000
"""Evaluations that are queued or running at a time. They take minutes each."""
RETRY_S = 60.0
N_EPISODES = 30
"""Episodes of an evaluation, as in the papers."""


def find(session: Session, evaluation_id: str) -> Evaluation | None:
    """The evaluation, or None."""
    return session.get(Evaluation, evaluation_id)


def request(
    session: Session,
    run_id: str,
    *,
    n_episodes: int | None = None,
    seed: int = 0,
    protocol: str | None = None,
    checkpoint_id: str | None = None,
    requested_by: str | None = None,
) -> tuple[Evaluation, Job]:
    """Queue the evaluation of a checkpoint.

    Args:
        session: a writing session.
        run_id: the run.
        n_episodes: number of episodes; default: 30, or one from each point of the protocol's start set.
        seed: seed of the evaluation.
        protocol: id of a protocol; default: that of the run's evaluations.
        checkpoint_id: a checkpoint of the run; default: the latest.
        requested_by: id of the user who requests it.

    Raises:
        NotFound: there is no such run.
        Conflict: the run is external, or has no checkpoint yet.
        Invalid: the checkpoint is not of this run, or the environment cannot be evaluated so, such as from a
            start set that does not exist or is of another game.
        TooMany: too many evaluations wait, of all users or of this one.
    """
    waiting = job_rows.count_waiting(session, EVALUATION)
    if sum(waiting.values()) >= MAX_WAITING or waiting.get(requested_by, 0) >= MAX_WAITING_OF_USER:
        raise TooMany("too many evaluations are queued: try again later", RETRY_S)
    # Locked, so that the checkpoint is not removed in the meantime.
    run = runs.get(session, run_id, for_update=True)
    spec = external.trainable_spec(run, "evaluate")
    protocol = protocol or spec.evaluation_protocol
    try:
        spec.catalogue_environment.protocol(protocol)
    except UnsupportedProtocolError as error:
        raise Invalid.field("protocol", str(error)) from None
    protocol, start_set = starts.resolved(
        session, protocol, spec.environment, spec.environment_config, "protocol"
    )
    if n_episodes is None:
        n_episodes = N_EPISODES if start_set is None else start_set.n_points
    if checkpoint_id is None:
        checkpoint = checkpoints.latest(session, run_id)
        if checkpoint is None:
            raise Conflict(f"the run is {run.state} and has no checkpoint to evaluate")
    else:
        checkpoint = checkpoints.get(session, checkpoint_id)
        if checkpoint is None or checkpoint.run_id != run_id or checkpoint.removed:
            raise Invalid.field(
                "checkpoint", "this run has no such checkpoint; without one, the latest is evaluated"
            )
    evaluation = Evaluation(
        id=new_id(),
        run_id=run_id,
        attempt=None,
        requested_at=database_now(session),
        protocol=protocol,
        n_episodes=n_episodes,
        seed=seed,
        agent_steps=checkpoint.agent_steps,
        frames=checkpoint.frames,
        wall_time_s=checkpoint.wall_time_s,
        checkpoint=checkpoint.file,
        returns=[],
        lengths_frames=[],
        mean_return=None,
        superseded=checkpoint.superseded,
    )
    repository.add(session, evaluation)
    job = jobs.request(session, EVALUATION, run_id, evaluation.id, queue=run.queue, requested_by=requested_by)
    runs.bump_revision(session, run_id)
    return evaluation, job


def record(session: Session, run_id: str, attempt: int, finished: EvaluationEvent) -> None:
    """Record an evaluation that the engine of a locked run has finished."""
    evaluation = Evaluation(
        id=new_id(),
        run_id=run_id,
        attempt=attempt,
        requested_at=database_now(session),
        n_episodes=len(finished.returns),
        **finished.model_dump(exclude={"type"}),
    )
    session.add(evaluation)


def record_returns(
    session: Session,
    evaluation_id: str,
    returns: Sequence[float],
    lengths_frames: Sequence[int],
    mean_return: float,
) -> None:
    """Record the results of a requested evaluation."""
    evaluation = session.get_one(Evaluation, evaluation_id)
    evaluation.returns, evaluation.lengths_frames = list(returns), list(lengths_frames)
    evaluation.mean_return = mean_return
