"""Saliency of recorded decisions, computed by a worker on the first request."""

from sqlalchemy.orm import Session

from backend.db import Checkpoint, Episode, Job, StoredSaliency
from backend.db.base import new_id
from backend.db.clock import database_now
from backend.db.job import SALIENCY
from backend.fleet.jobs import repository as job_rows
from backend.fleet.jobs import service as jobs
from backend.platform.errors import Conflict, Invalid, TooMany
from backend.replays.episodes import service as episodes
from backend.replays.saliency import repository
from backend.runs.checkpoints.policies import policy_in_episode
from backend.runs.runs import service as runs
from backend.specs.algorithms import ALGORITHMS
from backend.specs.run import RunSpec
from backend.specs.saliency import SaliencyMap

MAX_PER_EPISODE = 500
"""Maps of an episode that are kept."""
MAX_WAITING = 100
MAX_WAITING_OF_USER = 10
"""Maps that wait to be computed or are, of all users and of one."""
RETRY_S = 10.0


def find(session: Session, map_id: str) -> StoredSaliency | None:
    """The map, or None."""
    return repository.get(session, map_id)


def policy_of(
    session: Session, episode: Episode, decision: int, checkpoint_id: str | None, *, lock: bool = False
) -> tuple[Checkpoint, RunSpec]:
    """The checkpoint whose map is wanted, and its run's specification; `lock` as for `policy_in_episode`.

    Raises:
        Invalid: the decision or the checkpoint does not exist, or the checkpoint is not of an agent that can
            act in the episode.
        Conflict: the episode's run has no checkpoint or is external, or the agent's input is no image.
    """
    if decision >= episode.length_steps:
        message = f"the episode has {episode.length_steps:,} decisions, of which the first is 0"
        raise Invalid.field("decision", message)
    run = runs.get(session, episode.run_id)
    checkpoint, spec = policy_in_episode(session, run, episode.agent_steps, checkpoint_id, lock=lock)
    if spec.catalogue_environment.observation != "pixels":
        raise Conflict(
            f"the agent sees {spec.environment} as numbers, not as an image: nothing can be blurred"
        )
    return checkpoint, spec


def stored(session: Session, episode_id: str, decision: int, checkpoint_id: str) -> StoredSaliency | None:
    """The map of a decision for a checkpoint, or None."""
    return repository.find(session, episode_id, decision, checkpoint_id)


def request(
    session: Session,
    episode: Episode,
    *,
    decision: int,
    checkpoint_id: str | None,
    again: bool,
    requested_by: str | None = None,
) -> Job:
    """Queue a job that computes a map.

    Raises:
        Invalid: as `policy_of`.
        Conflict: as `policy_of`; or computing it has failed, and `again` is not set.
        TooMany: too many maps wait to be computed, of all users or of this one.
    """
    run = runs.get(session, episode.run_id, for_update=True)
    episodes.get(session, episode.id)
    checkpoint, spec = policy_of(session, episode, decision, checkpoint_id, lock=True)
    row = repository.find(session, episode.id, decision, checkpoint.id)
    if row is None:
        waiting = job_rows.count_waiting(session, SALIENCY)
        if sum(waiting.values()) >= MAX_WAITING or waiting.get(requested_by, 0) >= MAX_WAITING_OF_USER:
            raise TooMany("too many saliency maps wait to be computed: try again later", RETRY_S)
        repository.remove_oldest(session, episode.id, MAX_PER_EPISODE - 1)
        row = StoredSaliency(
            id=new_id(),
            episode_id=episode.id,
            run_id=episode.run_id,
            created_at=database_now(session),
            decision=decision,
            policy_run_id=checkpoint.run_id,
            checkpoint=checkpoint.file,
            checkpoint_id=checkpoint.id,
            checkpoint_agent_steps=checkpoint.agent_steps,
            action_values=ALGORITHMS[spec.algorithm].action_values,
        )
        repository.add(session, row)
    job = job_rows.find(session, SALIENCY, row.id)
    if job is not None and job.state == "failed" and not again:
        raise Conflict(f"computing the saliency map failed: {jobs.reason_of(job)}; retry with again=true")
    return jobs.request(session, SALIENCY, episode.run_id, row.id, queue=run.queue, requested_by=requested_by)


def record(session: Session, map_id: str, computed: SaliencyMap) -> None:
    """Record a map that the engine has computed; nothing of one that has been deleted."""
    row = repository.get(session, map_id)
    if row is not None:
        row.map = computed.model_dump()
