"""Sweeps, their configurations and their members in the database."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import and_, delete, func, or_, select, update
from sqlalchemy.orm import Session

from backend.db import Evaluation, LiveSettings, Run, Sweep, SweepConfiguration, SweepMember, keyset
from backend.experiments.sweeps.planning import CHANGED, Member, StoredMember, SweepCounts
from backend.experiments.sweeps.sampling import ConfigValues
from backend.specs.states import ENDED, RunState
from backend.specs.sweep import SweepSpec


def add(session: Session, sweep: Sweep) -> None:
    """Store a new sweep."""
    session.add(sweep)
    session.flush()


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


def counts(session: Session, sweep_ids: Collection[str]) -> dict[str, SweepCounts]:
    """How large each sweep is."""
    query = (
        select(
            SweepConfiguration.sweep_id,
            func.count(),
            func.count().filter(SweepConfiguration.eliminated.is_(None)),
        )
        .where(SweepConfiguration.sweep_id.in_(sweep_ids))
        .group_by(SweepConfiguration.sweep_id)
    )
    of_eliminated = (
        select(SweepMember.sweep_id, func.count())
        .join(
            SweepConfiguration,
            and_(
                SweepConfiguration.sweep_id == SweepMember.sweep_id,
                SweepConfiguration.number == SweepMember.configuration,
            ),
        )
        .where(SweepMember.sweep_id.in_(sweep_ids), SweepConfiguration.eliminated.is_not(None))
        .group_by(SweepMember.sweep_id)
    )
    n_of_eliminated = dict(session.execute(of_eliminated).all())
    by_sweep = {
        row[0]: SweepCounts(row[1], row[2], n_of_eliminated.get(row[0], 0), Counter())
        for row in session.execute(query)
    }
    states = (
        select(SweepMember.sweep_id, Run.state, func.count())
        .outerjoin(Run, Run.id == SweepMember.run_id)
        .where(SweepMember.sweep_id.in_(sweep_ids))
        .group_by(SweepMember.sweep_id, Run.state)
    )
    for sweep_id, state, n in session.execute(states):
        by_sweep[sweep_id].runs[state or "deleted"] += n
    for sweep_id, _, ended in _changed_runs(session, sweep_ids):
        if ended in ENDED:
            by_sweep[sweep_id].runs[ended] -= 1
            by_sweep[sweep_id].runs[CHANGED] += 1
    return by_sweep


def members(session: Session, sweep: Sweep, spec: SweepSpec) -> list[StoredMember]:
    """Every member with its run's state and score, by configuration and seed."""
    query = (
        select(SweepMember, Run.state, Run.score, Run.agent_steps, Run.early_agent_steps)
        .outerjoin(Run, Run.id == SweepMember.run_id)
        .where(SweepMember.sweep_id == sweep.id)
        .order_by(SweepMember.configuration, SweepMember.seed)
    )
    rows = session.execute(query).all()
    # The score of the first, short episodes enters no rank.
    scores = {row[0].run_id: None if row[4] and row[4] >= row[3] else row[2] for row in rows}
    if spec.objective == "evaluation":
        scores = _evaluation_scores(session, sweep.id, spec.protocol)
    changed = {run_id for _, run_id, _ in _changed_runs(session, [sweep.id])}
    return [
        StoredMember(
            Member(
                configuration=row[0].configuration,
                seed=row[0].seed,
                state=None if row[1] is None else RunState(row[1]),
                score=scores.get(row[0].run_id),
                agent_steps=row[3] or 0,
                is_changed=row[0].run_id in changed,
            ),
            row[0].run_id if row[1] is not None else None,
            row[0].waiting,
        )
        for row in rows
    ]


def _changed_runs(session: Session, sweep_ids: Collection[str]) -> list[tuple[str, str, str]]:
    """Sweep, id and state of each of their runs that was resumed with another limit, or changed live."""
    sweeps = session.scalars(select(Sweep).where(Sweep.id.in_(sweep_ids)))
    planned = {sweep.id: _limits(sweep.spec["run"]) for sweep in sweeps}
    changed_live = select(LiveSettings.run_id).where(LiveSettings.agent_steps.is_not(None))
    query = (
        select(
            SweepMember.sweep_id,
            SweepConfiguration.settings,
            Run.id,
            Run.state,
            Run.spec,
            Run.id.in_(changed_live),
        )
        .join(SweepMember, SweepMember.run_id == Run.id)
        .join(
            SweepConfiguration,
            (SweepConfiguration.sweep_id == SweepMember.sweep_id)
            & (SweepConfiguration.number == SweepMember.configuration),
        )
        .where(SweepMember.sweep_id.in_(sweep_ids), or_(Run.attempt > 1, Run.id.in_(changed_live)))
    )
    return [
        (sweep_id, run_id, state)
        for sweep_id, settings, run_id, state, spec, is_live in session.execute(query)
        if is_live or _limits(spec) != planned[sweep_id] | _varied_limits(settings)
    ]


def _limits(run: Mapping[str, Any]) -> dict[str, Any]:
    stop = run.get("stop")
    if not isinstance(stop, Mapping):  # of a damaged row
        return {}
    return {name: value for name, value in stop.items() if value is not None}


def _varied_limits(settings: Mapping[str, Any]) -> dict[str, Any]:
    section = "stop."
    if not isinstance(settings, Mapping):  # of a damaged row
        return {}
    return {path.removeprefix(section): value for path, value in settings.items() if path.startswith(section)}


def add_member(session: Session, sweep_id: str, configuration: int, seed: int, run_id: str) -> None:
    """Add a member with its run."""
    session.add(SweepMember(sweep_id=sweep_id, configuration=configuration, seed=seed, run_id=run_id))


def stop_waiting(session: Session, sweep_id: str, configuration: int, seed: int) -> None:
    """Mark a member as not waiting."""
    place = (SweepMember.configuration == configuration, SweepMember.seed == seed)
    session.execute(update(SweepMember).where(SweepMember.sweep_id == sweep_id, *place).values(waiting=False))


def mark_waiting(session: Session, sweep_id: str, seeds: Collection[tuple[int, int]]) -> None:
    """Mark the members with these configurations and seeds as waiting, and no others."""
    session.execute(update(SweepMember).where(SweepMember.sweep_id == sweep_id).values(waiting=False))
    for configuration, seed in seeds:
        place = (SweepMember.configuration == configuration, SweepMember.seed == seed)
        session.execute(
            update(SweepMember).where(SweepMember.sweep_id == sweep_id, *place).values(waiting=True)
        )


def running(session: Session) -> list[str]:
    """Ids of the running sweeps."""
    return list(session.scalars(select(Sweep.id).where(Sweep.state == "running").order_by(Sweep.id)))


def delete_members(session: Session, sweep_id: str, seeds: Collection[tuple[int, int]]) -> None:
    """Delete the members with these configurations and seeds."""
    for configuration, seed in seeds:
        session.execute(
            delete(SweepMember).where(
                SweepMember.sweep_id == sweep_id,
                SweepMember.configuration == configuration,
                SweepMember.seed == seed,
            )
        )


def clear_eliminated(session: Session, sweep_id: str, numbers: Collection[int]) -> None:
    """Mark these configurations as not eliminated."""
    session.execute(
        update(SweepConfiguration)
        .where(SweepConfiguration.sweep_id == sweep_id, SweepConfiguration.number.in_(numbers))
        .values(eliminated=None)
    )


def remove(session: Session, sweep: Sweep) -> None:
    """Delete a sweep's rows; its runs stay."""
    session.delete(sweep)
    session.flush()


def _evaluation_scores(
    session: Session, sweep_id: str, protocol: str | None
) -> dict[str | None, float | None]:
    """By run, the mean return of its latest evaluation by its own engine, or under a protocol; of several at
    the same agent steps that of its engine, and then the first: a later one may be of the best parameters."""
    query = (
        select(Evaluation.run_id, Evaluation.mean_return)
        .join(SweepMember, SweepMember.run_id == Evaluation.run_id)
        .where(
            SweepMember.sweep_id == sweep_id,
            Evaluation.superseded.is_(False),
            Evaluation.mean_return.is_not(None),
            Evaluation.attempt.is_not(None) if protocol is None else Evaluation.protocol == protocol,
        )
        .order_by(
            Evaluation.attempt.is_not(None),
            Evaluation.agent_steps,
            Evaluation.requested_at.desc(),
            Evaluation.id.desc(),
        )
    )
    # Of several rows of a run the last one stays.
    return dict(session.execute(query).all())
