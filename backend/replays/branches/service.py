"""Branches: continuations of a recorded episode from one of its decisions, played by a worker."""

from dataclasses import dataclass
from secrets import randbelow

import numpy as np
from sqlalchemy.orm import Session

from backend.db import Branch, Episode, Job
from backend.db.base import new_id
from backend.db.clock import database_now
from backend.db.engine import UnitOfWork
from backend.db.job import BRANCH
from backend.fleet.jobs import repository as job_rows
from backend.fleet.jobs import service as jobs
from backend.platform.artifacts import ArtifactStore
from backend.platform.errors import Conflict, Gone, Invalid, NotFound, TooMany
from backend.replays.branches import repository
from backend.replays.branches.outcomes import (
    Floats,
    discounted_return,
    outcome_of,
    pack_rewards,
    unpack_rewards,
    valued_decisions,
)
from backend.replays.branches.schemas import BranchRequest
from backend.replays.episodes import service as episodes
from backend.replays.episodes.schemas import Trace
from backend.replays.recordings import service as recordings
from backend.runs.checkpoints.policies import policy_in_episode
from backend.runs.runs import service as runs
from backend.specs.algorithms import ALGORITHMS
from backend.specs.branches import BranchOutcome, BranchPlan, EpisodeOutcome, Outcome
from backend.specs.recordings import later_turns
from backend.specs.run import RunSpec
from backend.specs.run_fields import MAX_SEED

MAX_PER_EPISODE = 100
"""Branches of one episode."""
MAX_HUMAN_CONTINUATIONS = 8
"""Games of people beside the continuations of a branch."""
MAX_WAITING = 100
"""Queued and running branches of all users."""
MAX_WAITING_OF_USER = 20
"""Queued and running branches of one user."""
RETRY_S = 10.0


def find(session: Session, branch_id: str) -> Branch | None:
    """The branch, or None."""
    return repository.get(session, branch_id)


def get(session: Session, branch_id: str, *, with_rewards: bool = False) -> Branch:
    """The branch.

    Raises:
        NotFound: there is none of this id.
    """
    branch = repository.get(session, branch_id, with_rewards=with_rewards)
    if branch is None:
        raise NotFound(f"branch {branch_id} does not exist")
    return branch


def create(
    work: UnitOfWork, store: ArtifactStore, request: BranchRequest, created_by: str | None
) -> tuple[Branch, Job]:
    """Store a branch, and queue the job that plays it.

    Args:
        work: written only after the replay is read.
        store: the artifact store.
        request: what to play.
        created_by: id of the user.

    Raises:
        Invalid: the episode, the checkpoint, the decision or the action does not exist; or the agent of the
            checkpoint cannot play on in this environment.
        Conflict: the run has no checkpoint, or the episode has too many branches.
        Gone: the episode's replay is damaged.
        TooMany: too many branches wait to be played.
    """
    episode = _episode(work.read, request.episode)
    if request.decision >= episode.length_steps:
        message = f"the episode has {episode.length_steps:,} decisions, of which the first is 0"
        raise Invalid.field("decision", message)
    trace = episodes.read_trace(work.read, store, episode)
    _check_action(request.first_action, trace)

    # Locked, so that retention removes neither the episode nor the checkpoint meanwhile.
    writing = work.write
    run = runs.get(writing, episode.run_id, for_update=True)
    episodes.get(writing, episode.id)
    checkpoint, policy_spec = policy_in_episode(
        writing, run, episode.agent_steps, request.checkpoint, lock=True
    )
    _check_room(writing, episode.id, created_by)

    gamma, clip = _discount_and_clip(policy_spec)
    branch = Branch(
        id=new_id(),
        episode_id=episode.id,
        run_id=episode.run_id,
        created_at=database_now(writing),
        created_by=created_by,
        decision=request.decision,
        n_continuations=request.continuations,
        horizon=request.horizon,
        seed=randbelow(MAX_SEED + 1) if request.seed is None else request.seed,
        first_action=request.first_action,
        policy_run_id=checkpoint.run_id,
        checkpoint=checkpoint.file,
        checkpoint_id=checkpoint.id,
        checkpoint_agent_steps=checkpoint.agent_steps,
        action_values=ALGORITHMS[policy_spec.algorithm].action_values,
        gamma=gamma,
        reward_clip=clip,
        episode_outcome=_episode_outcome(trace, request.decision, policy_spec).model_dump(),
    )
    repository.add(writing, branch)
    job = jobs.request(writing, BRANCH, episode.run_id, branch.id, queue=run.queue, requested_by=created_by)
    return branch, job


def _episode(session: Session, episode_id: str) -> Episode:
    try:
        return episodes.get(session, episode_id)
    except NotFound as error:
        raise Invalid.field("episode", str(error)) from None


def _check_action(action: int | None, trace: Trace) -> None:
    if action is None:
        return
    if trace.actions and isinstance(trace.actions[0], list):
        raise Invalid.field("first_action", "the environment has continuous actions: none can be named")
    if action >= len(trace.action_names):
        names = ", ".join(f"{number} {name}" for number, name in enumerate(trace.action_names))
        raise Invalid.field("first_action", f"the environment has the actions {names}")


def _check_room(session: Session, episode_id: str, user_id: str | None) -> None:
    if repository.count_of_episode(session, episode_id) >= MAX_PER_EPISODE:
        raise Conflict(f"the episode has {MAX_PER_EPISODE} branches: delete some first")
    waiting = job_rows.count_waiting(session, BRANCH)
    if sum(waiting.values()) >= MAX_WAITING or waiting.get(user_id, 0) >= MAX_WAITING_OF_USER:
        raise TooMany("too many branches wait to be played: try again later", RETRY_S)


def _episode_outcome(trace: Trace, decision: int, policy_spec: RunSpec) -> EpisodeOutcome:
    rewards = np.array(trace.rewards[decision:], np.float64)
    gamma, clip = _discount_and_clip(policy_spec)
    n_valued = valued_decisions(trace.lives, decision, value_is_per_life=value_is_per_life(policy_spec))
    # As of a continuation that a limit ends: the agent expected further rewards.
    last_value = trace.values[-1] if trace.truncated and n_valued == len(rewards) else None
    return EpisodeOutcome(
        value=trace.values[decision],
        true_return=float(rewards.sum()),
        discounted_return=discounted_return(rewards, n_valued, last_value, gamma, clip),
        last_value=last_value,
        length_steps=len(rewards),
        n_valued=n_valued,
    )


def _discount_and_clip(spec: RunSpec) -> tuple[float, float | None]:
    """Discount of a run's agent, and the bound of the rewards that it learns from, if they are clipped."""
    config = spec.config.model_dump()
    return config["gamma"], config.get("reward_clip") or None


def value_is_per_life(spec: RunSpec) -> bool:
    """Whether the agent of a run predicts the rewards up to a lost life only."""
    return bool(getattr(spec.environment_config, "life_loss_terminal", False))


def plan_of(branch: Branch) -> BranchPlan:
    """What the engine plays."""
    return BranchPlan(
        decision=branch.decision,
        continuations=branch.n_continuations,
        horizon=branch.horizon,
        seed=branch.seed,
        first_action=branch.first_action,
    )


def record(session: Session, branch_id: str, played: BranchOutcome) -> None:
    """Record what the engine has played. Does nothing if the branch has been deleted."""
    branch = repository.get(session, branch_id)
    if branch is not None:
        branch.outcome = outcome_of(played, branch.gamma, branch.reward_clip).model_dump()
        branch.rewards = pack_rewards(played)


def rewards_of(session: Session, branch: Branch) -> list[Floats]:
    """The rewards of each continuation; none until they are played."""
    row = get(session, branch.id, with_rewards=True)
    if row.outcome is None or row.rewards is None:
        return []
    played = Outcome.model_validate(row.outcome).continuations
    return unpack_rewards(row.rewards, [continuation.length_steps for continuation in played])


@dataclass(frozen=True)
class HumanContinuation:
    """How someone went on from a branch's decision in a play session."""

    who: str
    """Who made the decisions, in words."""
    rewards: Floats
    """True reward of each decision."""
    n_valued: int
    """Decisions whose rewards the agent's V predicts."""
    finished: bool
    """Whether the game was played to its end."""


def human_continuations(session: Session, branch: Branch) -> list[HumanContinuation]:
    """The latest games that people have played from a branch's decision on; damaged ones are left out."""
    games = []
    value_is_per_life = _value_is_per_life_of(session, branch)
    for recording in recordings.from_decision(
        session, branch.episode_id, branch.decision, MAX_HUMAN_CONTINUATIONS
    ):
        try:
            parts = recordings.read_parts(session, recording)
            acted = later_turns(recordings.turns(parts), branch.decision)
            if not acted:
                continue
            who = recordings.in_words(session, recording, acted)
        except Gone:
            continue
        lives = [left for part in parts for left in part.lives]
        games.append(
            HumanContinuation(
                who=who,
                rewards=np.array([reward for part in parts for reward in part.rewards][branch.decision :]),
                n_valued=valued_decisions(lives, branch.decision, value_is_per_life=value_is_per_life),
                finished=recording.finished,
            )
        )
    return games


def _value_is_per_life_of(session: Session, branch: Branch) -> bool:
    try:
        run = runs.get(session, branch.policy_run_id)
        return value_is_per_life(runs.spec_of(run))
    except (NotFound, Conflict):  # deleted, or it cannot be read
        return False


def delete(session: Session, branch_id: str) -> None:
    """Delete a branch; if it is being played, the result is discarded.

    Raises:
        NotFound: there is none of this id.
    """
    get(session, branch_id)
    repository.remove(session, branch_id)
