"""Sweeps in the database, and the reconciler that starts what they need next."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from backend.db import Evaluation, Run, Sweep, SweepConfiguration, SweepMember, keyset
from backend.db.base import new_id
from backend.db.changes import record_sweep_change
from backend.db.clock import database_now
from backend.runs import repository as runs
from backend.runs.grid import merged
from backend.specs.names import grid_name
from backend.specs.problems import InvalidSpec
from backend.specs.run import RunSpec, parse_run_spec
from backend.specs.states import RunState
from backend.specs.sweep import SweepSpec, SweepState
from backend.sweeps.planning import Member, Plan, plan
from backend.sweeps.sampling import ConfigValues

MAX_STARTS = 20
"""Runs started in one transaction, so that other writers wait for a moment only."""


@dataclass(frozen=True)
class MemberRun:
    """A member with its run, if that exists."""

    member: Member
    run_id: str | None


def create(
    session: Session, spec: SweepSpec, configurations: Sequence[ConfigValues], *, created_by: str | None
) -> Sweep:
    """Store a running sweep; the reconciler starts its runs."""
    sweep = Sweep(
        id=new_id(),
        created_at=database_now(session),
        created_by=created_by,
        name=spec.name,
        spec=spec.model_dump(mode="json"),
        state="running",
        state_reason="created",
        looks=0,
        revision=0,
    )
    session.add(sweep)
    session.flush()
    add_configurations(session, sweep, configurations)
    touch(session, sweep)
    return sweep


def add_configurations(session: Session, sweep: Sweep, configurations: Sequence[ConfigValues]) -> None:
    """Add configurations after those that the sweep has."""
    query = select(func.count()).where(SweepConfiguration.sweep_id == sweep.id)
    first = session.scalars(query).one()
    session.add_all(
        SweepConfiguration(sweep_id=sweep.id, number=first + at, settings=settings, eliminated=None)
        for at, settings in enumerate(configurations)
    )
    session.flush()


def get(session: Session, sweep_id: str, *, for_update: bool = False) -> Sweep | None:
    """The sweep, or None. `for_update` locks its row until the end of the transaction."""
    return session.get(Sweep, sweep_id, with_for_update=for_update or None, populate_existing=for_update)


def page(session: Session, *, limit: int, cursor: str | None) -> tuple[list[Sweep], str | None]:
    """One page of sweeps, latest first."""
    return keyset.page(
        session,
        select(Sweep),
        by=Sweep.created_at,
        row_id=Sweep.id,
        descending=True,
        limit=limit,
        cursor=cursor,
    )


def configurations(session: Session, sweep_id: str) -> Sequence[SweepConfiguration]:
    """All configurations, by number."""
    query = select(SweepConfiguration).where(SweepConfiguration.sweep_id == sweep_id)
    return session.scalars(query.order_by(SweepConfiguration.number)).all()


def counts(session: Session, sweep_ids: Collection[str]) -> dict[str, tuple[int, int, Counter[str]]]:
    """For each sweep: configurations, those that may get further seeds, and runs by state."""
    query = (
        select(
            SweepConfiguration.sweep_id,
            func.count(),
            func.count().filter(SweepConfiguration.eliminated.is_(None)),
        )
        .where(SweepConfiguration.sweep_id.in_(sweep_ids))
        .group_by(SweepConfiguration.sweep_id)
    )
    found = {row[0]: (row[1], row[2], Counter[str]()) for row in session.execute(query)}
    states = (
        select(SweepMember.sweep_id, Run.state, func.count())
        .outerjoin(Run, Run.id == SweepMember.run_id)
        .where(SweepMember.sweep_id.in_(sweep_ids))
        .group_by(SweepMember.sweep_id, Run.state)
    )
    for sweep_id, state, n in session.execute(states):
        found[sweep_id][2][state or "deleted"] += n
    return found


def members(session: Session, sweep: Sweep, spec: SweepSpec) -> list[MemberRun]:
    """Every member with its run's state and score, by configuration and seed."""
    query = (
        select(SweepMember, Run.state, Run.score, Run.agent_steps)
        .outerjoin(Run, Run.id == SweepMember.run_id)
        .where(SweepMember.sweep_id == sweep.id)
        .order_by(SweepMember.configuration, SweepMember.seed)
    )
    rows = session.execute(query).all()
    scores = {row[0].run_id: row[2] for row in rows}
    if spec.objective == "evaluation":
        scores = _evaluated(session, sweep.id, spec.protocol)
    return [
        MemberRun(
            Member(
                configuration=row[0].configuration,
                seed=row[0].seed,
                state=None if row[1] is None else RunState(row[1]),
                score=scores.get(row[0].run_id),
                agent_steps=row[3] or 0,
            ),
            row[0].run_id if row[1] is not None else None,
        )
        for row in rows
    ]


def running(session: Session) -> list[str]:
    """Ids of the running sweeps."""
    return list(session.scalars(select(Sweep.id).where(Sweep.state == "running").order_by(Sweep.id)))


def is_due(session: Session, sweep_id: str) -> bool:
    """Whether a running sweep has something to do. Reads only."""
    sweep = get(session, sweep_id)
    return sweep is not None and _plan(session, sweep)[1].changes(sweep.looks)


def reconcile(session: Session, sweep_id: str) -> bool:
    """Do what a running sweep needs next, at most `MAX_STARTS` runs of it; return whether anything was done.

    The sweep's row is locked, so two processes never start the same run.
    """
    sweep = get(session, sweep_id, for_update=True)
    if sweep is None or sweep.state != "running":
        return False
    spec, due = _plan(session, sweep)
    if not due.changes(sweep.looks):
        return False
    by_number = {one.number: one for one in configurations(session, sweep_id)}
    for number, reason in due.eliminated.items():
        by_number[number].eliminated = reason
    sweep.looks = due.looks
    for number, seed in due.start[:MAX_STARTS]:
        configuration = by_number[number]
        try:
            run_spec = member_spec(spec, configuration.settings, seed)
        except InvalidSpec as error:  # stored by another version, whose settings were others
            configuration.eliminated = f"its settings are no longer valid: {error}"
            continue
        run = runs.create(session, run_spec, created_by=sweep.created_by, reason=f"started by {sweep.name}")
        session.add(SweepMember(sweep_id=sweep_id, configuration=number, seed=seed, run_id=run.id))
    if due.finished is not None:
        end(session, sweep, "finished", due.finished)
    touch(session, sweep)
    return True


def member_spec(spec: SweepSpec, settings: ConfigValues, seed: int) -> RunSpec:
    """The specification of a member's run.

    Raises:
        InvalidSpec: with one problem per invalid field.
    """
    run_spec = parse_run_spec(merged(spec.run, settings) | {"seed": seed})
    return run_spec.model_copy(update={"name": grid_name(run_spec, [*settings], spec.max_seeds)})


def end(session: Session, sweep: Sweep, state: SweepState, reason: str) -> None:
    """End a locked sweep, or let it run again."""
    sweep.state = state
    sweep.state_reason = reason
    sweep.ended_at = None if state == "running" else database_now(session)


def change(session: Session, sweep: Sweep, changes: Mapping[str, Any]) -> None:
    """Change fields of a locked sweep, in its columns and in its spec."""
    sweep.spec = {**sweep.spec, **changes}
    sweep.name = sweep.spec["name"]
    touch(session, sweep)


def forget_members(session: Session, sweep_id: str, seeds: Collection[tuple[int, int]]) -> None:
    """Remove members whose runs were deleted, so that the reconciler starts them again."""
    for configuration, seed in seeds:
        session.execute(
            delete(SweepMember).where(
                SweepMember.sweep_id == sweep_id,
                SweepMember.configuration == configuration,
                SweepMember.seed == seed,
            )
        )


def readmit(session: Session, sweep_id: str, numbers: Collection[int]) -> None:
    """Let eliminated configurations get further seeds."""
    session.execute(
        update(SweepConfiguration)
        .where(SweepConfiguration.sweep_id == sweep_id, SweepConfiguration.number.in_(numbers))
        .values(eliminated=None)
    )


def remove(session: Session, sweep: Sweep) -> None:
    """Delete a sweep's rows; its runs stay."""
    record_sweep_change(session, sweep.id, sweep.revision + 1, "deleted")
    session.delete(sweep)
    session.flush()


def touch(session: Session, sweep: Sweep) -> None:
    """Bump the revision of a locked sweep; the change is published after the commit."""
    sweep.revision += 1
    record_sweep_change(session, sweep.id, sweep.revision, sweep.state)
    session.flush()


def _plan(session: Session, sweep: Sweep) -> tuple[SweepSpec, Plan]:
    spec = SweepSpec.model_validate(sweep.spec)
    active = [one.number for one in configurations(session, sweep.id) if one.eliminated is None]
    found = [one.member for one in members(session, sweep, spec)]
    elapsed_s = (database_now(session) - sweep.created_at).total_seconds()
    return spec, plan(spec, active, found, looks=sweep.looks, elapsed_s=elapsed_s)


def _evaluated(session: Session, sweep_id: str, protocol: str | None) -> dict[str | None, float | None]:
    """By run, the mean return of its latest evaluation by its own engine, or under a protocol."""
    query = (
        select(Evaluation.run_id, Evaluation.mean_return)
        .join(SweepMember, SweepMember.run_id == Evaluation.run_id)
        .where(
            SweepMember.sweep_id == sweep_id,
            Evaluation.superseded.is_(False),
            Evaluation.mean_return.is_not(None),
            Evaluation.attempt.is_not(None) if protocol is None else Evaluation.protocol == protocol,
        )
        .order_by(Evaluation.agent_steps, Evaluation.id)
    )
    return dict(session.execute(query).all())
