"""Exports of checkpoints' agents, computed by a worker on the first request."""

import numpy as np
from sqlalchemy.orm import Session

from backend.analysis.agents import repository
from backend.analysis.comparisons import repository as alike_runs
from backend.analysis.comparisons import service as comparisons
from backend.db import Checkpoint, Job, Run, StoredAgent
from backend.db.base import new_id
from backend.db.clock import database_now
from backend.db.job import AGENT
from backend.fleet.jobs import repository as job_rows
from backend.fleet.jobs import service as jobs
from backend.fleet.storage import service as storage
from backend.platform.artifacts import ArtifactStore, Damaged, agent_file
from backend.platform.errors import Conflict, Invalid, TooMany
from backend.runs.checkpoints import repository as checkpoints
from backend.runs.checkpoints import service as checkpoint_service
from backend.runs.evaluations import repository as evaluations
from backend.runs.runs import external
from backend.runs.runs import repository as run_rows
from backend.runs.runs import service as runs
from backend.runs.runs.groups import keys_of
from backend.specs.agents import AgentCard, AgentFormat, AgentScore, SeedScore
from backend.specs.protocols import GREEDY
from backend.statistics.estimates import INTERVAL_NAME, median

MAX_PER_RUN = 20
"""Exported agents of a run that are kept."""
MAX_WAITING = 100
MAX_WAITING_OF_USER = 10
"""Agents that wait to be exported or are, of all users and of one."""
RETRY_S = 30.0
_MAX_COMPARED = 100


def find(session: Session, agent_id: str) -> StoredAgent | None:
    """The exported agent, or None."""
    return repository.get(session, agent_id)


def choose(session: Session, run: Run, checkpoint: str) -> Checkpoint:
    """A checkpoint of a run.

    Args:
        session: any session.
        run: the run.
        checkpoint: `best`: the one with the highest mean return of an evaluation under the run's own
            protocol; `latest`; or its id.

    Raises:
        Conflict: the run is external, or has no such checkpoint.
        Invalid: the id is of no checkpoint of the run.
    """
    spec = external.trainable_spec(run, "export")
    stored = checkpoints.resumable(session, run.id)
    if checkpoint not in ("best", "latest"):
        row = checkpoints.get(session, checkpoint)
        if row is None or row.run_id != run.id or row.removed:
            raise Invalid.field("checkpoint", "must be best, latest or the id of a stored one of this run")
        return row
    if not stored:
        raise Conflict(f"the run is {run.state} and has no checkpoint to export")
    if checkpoint == "latest":
        return stored[0]
    by_file = {row.file: row for row in stored}
    protocol = spec.evaluation_protocol
    scored = {
        row.checkpoint: row.mean_return
        for row in sorted(evaluations.finished(session, [run.id]), key=lambda row: row.mean_return or 0.0)
        if row.checkpoint in by_file and row.protocol == protocol and row.mean_return is not None
    }
    if not scored:
        raise Conflict(
            f"no stored checkpoint has a score under the run's protocol {protocol}: evaluate one, or export "
            "latest"
        )
    return by_file[max(scored, key=lambda file: scored[file] or 0.0)]


def card_of(session: Session, run: Run, checkpoint: Checkpoint, licence: str | None) -> AgentCard:
    """What the model card of a checkpoint's agent states, but for the scores over seeds."""
    scores = [
        AgentScore(
            protocol=row.protocol,
            n_episodes=len(row.returns),
            seed=row.seed,
            mean_return=row.mean_return or 0.0,
            std_return=float(np.std(row.returns)),
            median_return=estimate.value,
            low=estimate.low,
            high=estimate.high,
            is_greedy=GREEDY in row.protocol,
            evaluated_at=row.requested_at.isoformat(timespec="seconds"),
        )
        for row in evaluations.finished(session, [run.id])
        if row.checkpoint == checkpoint.file and row.returns
        for estimate in [median(np.array(row.returns))]
    ]
    attempts = {row.number: row.provenance for row in run_rows.attempts(session, run.id)}
    provenance = attempts.get(checkpoint.attempt) or {}
    versions = {"callboard": provenance["version"], **provenance["packages"]} if provenance else {}
    return AgentCard(
        run=run.id,
        name=run.name,
        checkpoint=checkpoint.file,
        sha256=checkpoint.sha256,
        agent_steps=checkpoint.agent_steps,
        frames=checkpoint.frames,
        wall_time_s=checkpoint.wall_time_s,
        seed=run.seed,
        device=provenance.get("device"),
        departures=[f"{name}: {text}" for name, text in run.departures.items()],
        scores=scores,
        over_seeds=None,
        versions=versions,
        commit=provenance.get("commit"),
        licence=licence,
    )


def current(
    session: Session, checkpoint: Checkpoint, file_format: AgentFormat, card: AgentCard
) -> StoredAgent | None:
    """The exported agent of a checkpoint, if its card states what is known now."""
    row = repository.find(session, checkpoint.id, file_format)
    if row is None or row.card | {"over_seeds": None} != card.model_dump(mode="json"):
        return None
    return row


def is_stored(store: ArtifactStore, agent: StoredAgent) -> bool:
    """Whether its archive is stored and intact; a damaged or lost one is written again."""
    if agent.sha256 is None:
        return False
    try:
        store.check(agent.run_id, "videos", agent_file(agent.id), agent.sha256)
    except (Damaged, FileNotFoundError):
        return False
    return True


def request(
    session: Session,
    run: Run,
    *,
    checkpoint: str,
    file_format: AgentFormat,
    licence: str | None,
    again: bool,
    requested_by: str | None = None,
) -> Job:
    """Queue a job that exports the agent of a checkpoint.

    Raises:
        Conflict: as `choose`; or exporting it has failed, and `again` is not set.
        Invalid: as `choose`.
        TooMany: too many agents wait to be exported, of all users or of this one.
    """
    run = runs.get(session, run.id, for_update=True)  # so that its checkpoint is not removed meanwhile
    chosen = checkpoint_service.get_stored(session, choose(session, run, checkpoint).id)
    card = card_of(session, run, chosen, licence)
    row = current(session, chosen, file_format, card)
    if row is None:
        waiting = job_rows.count_waiting(session, AGENT)
        if sum(waiting.values()) >= MAX_WAITING or waiting.get(requested_by, 0) >= MAX_WAITING_OF_USER:
            raise TooMany("too many agents wait to be exported: try again later", RETRY_S)
        _make_room(session, run.id, repository.find(session, chosen.id, file_format))
        row = StoredAgent(
            id=new_id(),
            run_id=run.id,
            checkpoint_id=chosen.id,
            checkpoint=chosen.file,
            format=file_format,
            created_at=database_now(session),
            card=card.model_copy(update={"over_seeds": _over_seeds(session, run)}).model_dump(mode="json"),
        )
        repository.add(session, row)
    job = job_rows.find(session, AGENT, row.id)
    if job is not None and job.state == "failed" and not again:
        raise Conflict(f"exporting the agent failed: {jobs.reason_of(job)}; retry with again=true")
    return jobs.request(session, AGENT, run.id, row.id, queue=run.queue, requested_by=requested_by)


def record(session: Session, agent_id: str, *, sha256: str, n_bytes: int) -> None:
    """Record an agent that is exported; nothing of one that has been replaced."""
    row = repository.get(session, agent_id)
    if row is not None:
        row.sha256, row.n_bytes = sha256, n_bytes


def _make_room(session: Session, run_id: str, outdated: StoredAgent | None) -> None:
    """Delete the outdated export of a checkpoint, and the oldest ones of a run that has too many."""
    stored = repository.of_run(session, run_id)
    removed = list(stored[: max(0, len(stored) - MAX_PER_RUN + 1)])
    if outdated is not None and outdated not in removed:
        removed.append(outdated)
    storage.release_files(session, run_id, "videos", [agent_file(row.id) for row in removed])
    for row in removed:
        repository.remove(session, row.id)


def _over_seeds(session: Session, run: Run) -> SeedScore | None:
    """The score of the run's configuration over its seeds; None of a single one."""
    keys = keys_of([*alike_runs.alike(session, [run]), run], run_rows.specs_of(session))
    ids = [id_ for id_, key in keys.items() if key == keys[run.id]]
    if len(ids) < 2:
        return None
    for measured_by in ("evaluation", "training"):
        comparison = comparisons.compare(session, ids[:_MAX_COMPARED], measured_by, "end", None)
        [group] = comparison.groups
        if group.median is not None:
            seeds = sorted(member.seed for member in group.runs if member.left_out is None)
            return SeedScore(
                measured_by=measured_by,
                seeds=seeds,
                median=group.median.value,
                low=group.median.low,
                high=group.median.high,
                interval=INTERVAL_NAME,
            )
    return None
