"""What users may do with a run, and when: change, archive, stop, resume, delete and restore it."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from backend.db import Run
from backend.db.changes import host_queue, record_change, record_work
from backend.db.clock import database_now
from backend.platform.errors import Conflict, NotFound, Overwritten
from backend.runs.runs import external, repository, service
from backend.runs.starts import service as starts
from backend.specs.annealing import RESUMED_WITH_OTHER_RATES, Annealing, annealing_notice, with_annealing
from backend.specs.departures import with_change
from backend.specs.problems import FieldProblem
from backend.specs.run import RunSpec, StopSpec, parse_run_spec
from backend.specs.run_fields import EXTERNAL, SCORE_EPISODES
from backend.specs.states import ENDED, LEASED, RunState


def change(
    session: Session, run_id: str, changes: Mapping[str, Any], expected: Mapping[str, Any] | None = None
) -> Run:
    """Change fields that can change in any state. Null means no change, but for `group`.

    Raises:
        Overwritten: a field has another value than the expected one.
    """
    run = service.get(session, run_id, for_update=True)
    expected = expected or {}
    Overwritten.check({name: getattr(run, name) for name in expected}, expected)
    values = {name: value for name, value in changes.items() if name == "group" or value is not None}
    if "group" in values:
        values["group"] = values["group"] or None
    if values:
        _change(session, run, values)
    return run


def archive(session: Session, run_id: str, archived: bool) -> Run:
    """Archive or unarchive a run."""
    run = service.get(session, run_id, for_update=True)
    if archived and run.state not in ENDED:
        raise Conflict(f"the run is {run.state}: stop it before you archive it")
    _change(session, run, {"archived": archived})
    return run


def stop(session: Session, run_id: str, *, kill: bool) -> Run:
    """Request the end of a run: gracefully with a final checkpoint, or immediately. Repeated requests are
    harmless.

    Raises:
        Conflict: it has already ended, or it is an external run, which cannot be killed.
    """
    run = service.get(session, run_id, for_update=True)
    if kill:
        external.refuse(run, "kill")
    state = RunState(run.state)
    if state in ENDED:
        raise Conflict(f"the run is {state}: it has already ended")
    if state not in LEASED:
        service.transition(session, run, RunState.STOPPED, f"stopped while {state}")
        return run
    service.request_stop(session, run, kill=kill)
    return run


def request_checkpoint(session: Session, run_id: str) -> Run:
    """Request a checkpoint of a run that goes on training. Repeated requests are harmless.

    Raises:
        Conflict: it is not running, or it is an external run, whose script saves what it likes.
    """
    run = service.get(session, run_id, for_update=True)
    if run.origin == EXTERNAL:
        raise Conflict("its script saves its files itself: Callboard cannot ask for one")
    if run.state != RunState.RUNNING:
        raise Conflict(f"the run is {run.state}: only a running run saves a checkpoint on request")
    if run.checkpoint_requested_at is None:
        run.checkpoint_requested_at = database_now(session)
        if run.host is not None:
            record_work(session, host_queue(run.host))
        service.touch(session, run)
    return run


def resume(
    session: Session, run_id: str, bounds: StopSpec | None = None, annealing: Annealing | None = None
) -> Run:
    """Queue an ended run again; it resumes from its latest intact checkpoint.

    A stopped or failed run at its limit completes what is missing, such as its last evaluation, and finishes,
    unless its limits or schedule change. The log states what new limits do to an annealed learning rate.

    Raises:
        Conflict: it has not ended, is external or the demo run, or has reached a limit and either
            has finished or is to have other limits or another schedule.
        InvalidSpec: the new limits, or `annealing`, do not fit the run's settings.
        Invalid: the start set of its evaluations has been deleted.
    """
    run = service.get(session, run_id, for_update=True)
    external.refuse(run, "resume")
    if run.demo:
        raise Conflict("the demo run has no checkpoint: clone it to train another one")
    state = RunState(run.state)
    if state not in ENDED:
        raise Conflict(f"the run is {state}: only an ended run can be resumed")
    if run.origin != EXTERNAL:
        starts.check_stored(session, run.spec)
    elif bounds is not None or annealing is not None:
        raise Conflict("a command has no limits: its script knows them, and is started anew as it was")
    notice = None
    may_complete = state != RunState.FINISHED
    if bounds is not None or annealing is not None:
        before = service.spec_of(run)
        stop = before.stop if bounds is None else bounds
        changed = parse_run_spec(run.spec | {"stop": stop.model_dump(exclude_none=True)})
        spec = with_annealing(before, changed, annealing)
        changes = spec.model_dump(mode="json", include={"stop", "annealing_agent_steps"})
        parse_run_spec(run.spec | changes)  # the limit may have been what the schedule needs
        _change(session, run, changes)
        run.memory_estimate_bytes = spec.memory_estimate_bytes
        notice = annealing_notice(before, spec, run.agent_steps)
        if notice is not None:
            over = before.annealed_over_agent_steps, spec.annealed_over_agent_steps
            run.departures = with_change(run.departures, "annealing_agent_steps", *over, run.agent_steps)
        may_complete = may_complete and spec == before
    reached = _reached_limits(run)
    if reached and not may_complete:
        errors = [FieldProblem(field=f"stop.{name}", message=message) for name, message in reached]
        hint = "" if state == RunState.FINISHED else "; without changes it completes what is missing"
        raise Conflict(f"the run is {state}: {reached[0][1]}{hint}", errors)
    run.error = None
    run.attempts_without_checkpoint = 0
    run.host_deaths = 0
    run.archived = False
    has_other_rates = notice is not None and run.agent_steps > 0
    reason = RESUMED_WITH_OTHER_RATES if has_other_rates else "resumed"
    service.transition(session, run, RunState.QUEUED, reason)
    if notice is not None:
        service.log(session, run.id, run.attempt, "warning", notice)
    return run


def delete(session: Session, run_id: str, *, restorable: bool = False) -> None:
    """Delete a run without a lease: permanently, or so that it can be restored for a while. Clean-up deletes
    the files.

    A waiting run that can be restored is stopped: no worker may claim it meanwhile.

    Raises:
        Conflict: a worker holds its lease, or its script has not been asked to stop.
    """
    run = service.get(session, run_id, for_update=True, any_spec=True)
    # The script of an external run may be unable to confirm that it stops, as on a full disk.
    if run.state in LEASED and (run.runs_here or not run.stop_requested):
        raise Conflict(f"the run is {run.state}: stop it before you delete it")
    if not restorable:
        service.remove(session, run)
        return
    if run.state not in ENDED:
        service.transition(session, run, RunState.STOPPED, "deleted")
    run.deleted_at = database_now(session)
    record_change(session, "run", run.id, state="deleted")
    session.flush()


def restore(session: Session, run_id: str) -> Run:
    """Bring back a run that was deleted as restorable.

    Raises:
        NotFound: there is none, or the time for it has passed.
    """
    run = repository.get_restorable(session, run_id)
    if run is None:
        raise NotFound(f"run {run_id} cannot be restored: it was not deleted, or its files have been removed")
    run.deleted_at = None
    service.touch(session, run)
    return run


def _change(session: Session, run: Run, changes: Mapping[str, Any]) -> None:
    """Change fields of a locked run, in its columns and in its spec, and bump its revision."""
    spec = dict(run.spec)
    for name, value in changes.items():
        if name in Run.__mapper__.columns:
            setattr(run, name, value)
        if name in RunSpec.model_fields:
            spec[name] = value
    run.spec = spec
    service.touch(session, run)


def _reached_limits(run: Run) -> Sequence[tuple[str, str]]:
    """The limits of a run that it has reached, each with what to do."""
    stop = run.spec["stop"]
    reached = []
    if stop["agent_steps"] and run.agent_steps >= stop["agent_steps"]:
        message = (
            f"it has reached its limit of {stop['agent_steps']:,} agent steps ({run.agent_steps:,} "
            "completed): set a higher limit"
        )
        reached.append(("agent_steps", message))
    if stop["wall_time_s"] and run.wall_time_s >= stop["wall_time_s"]:
        message = (
            f"it has reached its limit of {stop['wall_time_s']:,.10g} s of training "
            f"({round(run.wall_time_s, 1):,.10g} s completed): set a higher limit"
        )
        reached.append(("wall_time_s", message))
    counts_score = run.episodes >= SCORE_EPISODES  # else the run would train on
    if stop["score"] is not None and counts_score and run.score is not None and run.score >= stop["score"]:
        message = (
            f"it has reached its score limit of {stop['score']:g} (score {run.score:g}): raise or remove it"
        )
        reached.append(("score", message))
    return reached
