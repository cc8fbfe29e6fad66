"""Compares what has happened with the rules, and raises alerts. Workers do this every few seconds.

What happens at a moment, such as the end of a run, is a row of `alert_signals` that is written with it and
deleted with its alerts, in one transaction: nothing is missed or raised twice when a worker is killed. What
lasts, such as a metric above a value, is read from the runs; a rule has one alert of each kind about an
attempt.
"""

from collections.abc import Collection, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy.orm import Session

from backend.alerts.alerts import repository as alerts_repository
from backend.alerts.alerts import service as alerts
from backend.alerts.alerts.service import NewAlert
from backend.alerts.evaluation import repository
from backend.alerts.evaluation.conditions import RunFacts, Tail, met
from backend.alerts.rules import repository as rules
from backend.analysis.metrics import repository as metrics
from backend.db import AlertRule, AlertSignal, Host, Run
from backend.db.clock import database_now
from backend.fleet.hosts import repository as host_rows
from backend.fleet.hosts.service import is_online
from backend.platform.principals import Role
from backend.platform.settings import Settings
from backend.specs.host_load import HostLoad
from backend.specs.states import RunState

SIGNALS_TOGETHER = 50
FILLING = 2.0
"""Multiple of the minimum free space below which a disk is filling."""
_MAX_TAIL_CHUNKS = 64

_LASTING = frozenset({"no_points", "metric", "score", "nan"})
"""Kinds that are read from runs."""
_TITLES = {"finished": "finished", "failed": "failed", "lost": "lost"}

Compared = MutableMapping[tuple[str, datetime, str], int]
"""By rule, its time and run: the revision of the run whose metric was compared."""


@dataclass(frozen=True)
class Due:
    """An alert that a rule is to have."""

    rule: AlertRule
    alert: NewAlert


def latest_signal(session: Session) -> int | None:
    """Id of the latest signal; None if there is nothing for `raise_signalled`."""
    return repository.latest_signal(session)


def raise_signalled(session: Session, until: int) -> bool:
    """Compare the first signals with the rules, raise their alerts and delete them; return whether there may
    be more.

    Args:
        session: a writing session.
        until: id of the latest signal when `due` compared the runs: what lasted until a run's end is not
            missed.
    """
    signals = repository.take_signals(session, until, SIGNALS_TOGETHER)
    every = rules.every(session) if signals else []
    targets = _Targets(session, every)
    for signal in signals:
        described = _describe(session, signal)
        if described is None:
            continue
        alert, run = described
        matching: dict[str, list[AlertRule]] = {}
        for rule in every:
            if signal.kind in rule.kinds and signal.time >= rule.created_at and _is_about(rule, run):
                matching.setdefault(rule.owner_id, []).append(rule)
        for owner_id, of_owner in matching.items():
            # One alert, however many rules of a user it matches.
            first = of_owner[0]
            if repository.lock_rule(session, first.id):
                alerts.raise_alert(session, owner_id, first.id, alert, targets.of(of_owner))
        if signal.kind == "script" and run is not None and run.created_by not in (None, *matching):
            assert run.created_by is not None
            alerts.raise_alert(session, run.created_by, None, alert, ())
    return len(signals) == SIGNALS_TOGETHER


def due(session: Session, settings: Settings, compared: Compared, *, hosts: bool = True) -> list[Due]:
    """What lasts, and of which rules have no alert yet. Reads only.

    Args:
        session: any session.
        settings: of the worker.
        compared: what was compared before, which is updated.
        hosts: whether to look at hosts: after an outage of the database all seem to be away.
    """
    every = rules.every(session)
    candidates: list[Due] = []
    watching = [rule for rule in every if _LASTING.intersection(rule.kinds)]
    if watching:
        candidates += _of_runs(session, watching, compared)
    if hosts and any({"host_away", "disk_filling"}.intersection(rule.kinds) for rule in every):
        candidates += _of_hosts(session, every, settings)
    if not candidates:
        return []
    raised = alerts_repository.keys_about(session, {candidate.alert.subject_id for candidate in candidates})
    return [candidate for candidate in candidates if _key(candidate) not in raised]


def raise_due(session: Session, candidates: Sequence[Due]) -> None:
    """Raise alerts about what lasts."""
    targets = _Targets(session, [candidate.rule for candidate in candidates])
    for candidate in candidates:
        if repository.lock_rule(session, candidate.rule.id):
            rule = candidate.rule
            alerts.raise_alert(session, rule.owner_id, rule.id, candidate.alert, targets.of([rule]))


def _key(candidate: Due) -> alerts_repository.AlertKey:
    alert = candidate.alert
    return candidate.rule.id, alert.subject_id, alert.attempt, alert.kind, alert.occurrence


class _Targets:
    """The targets of rules whose owners may use them."""

    def __init__(self, session: Session, of_rules: Sequence[AlertRule]) -> None:
        self._targets = rules.targets_of(session, [rule.id for rule in of_rules])
        self._roles = repository.roles(session, {rule.owner_id for rule in of_rules})

    def of(self, of_rules: Sequence[AlertRule]) -> list[str]:
        """The targets of some rules of one owner."""
        if not Role(self._roles[of_rules[0].owner_id]).covers(Role.OPERATOR):
            return []
        return sorted({target for rule in of_rules for target in self._targets.get(rule.id, [])})


def _is_about(rule: AlertRule, run: Run | None) -> bool:
    if run is None:
        return rule.run_id is None and rule.group is None and rule.project is None
    is_of_run = rule.run_id in (None, run.id) and rule.group in (None, run.group)
    return is_of_run and rule.project in (None, run.project)


def _describe(session: Session, signal: AlertSignal) -> tuple[NewAlert, Run | None] | None:
    """The alert about a signal, and its run; None if what it is about has been deleted."""
    if signal.kind in ("sweep_done", "study_done"):
        name = repository.experiment_name(session, signal.subject_id)
        if name is None:
            return None
        what = "Sweep" if signal.kind == "sweep_done" else "Study"
        # It may be extended, and end again.
        return _alert(signal, f"{what} {name}: done", f"{signal.time:%Y-%m-%dT%H:%M:%S}"), None
    run = repository.run(session, signal.subject_id)
    if run is None:
        return None
    if signal.kind == "script":
        return _alert(signal, f"{run.name}: {signal.title}", str(signal.id)), run
    alert = _alert(signal, f"{run.name}: {_TITLES[signal.kind]}")
    if signal.kind == "finished" and run.score is not None:
        alert = replace(alert, text=f"{signal.text}. Score {run.score:.4g}.")
    return alert, run


def _alert(signal: AlertSignal, title: str, occurrence: str = "") -> NewAlert:
    return NewAlert(
        kind=signal.kind,
        level=signal.level,
        title=title,
        text=signal.text,
        subject_id=signal.subject_id,
        attempt=signal.attempt,
        occurrence=occurrence,
        agent_steps=signal.agent_steps,
    )


def _of_runs(session: Session, watching: Sequence[AlertRule], compared: Compared) -> Iterator[Due]:
    runs = repository.runs(session, repository.subjects(session))
    matching = [(rule, run) for run in runs for rule in watching if _is_about(rule, run)]
    kinds = {kind for rule, _ in matching for kind in rule.kinds}
    ids = {run.id for _, run in matching}
    since = repository.running_since(session, ids) if "no_points" in kinds else {}
    not_finite = repository.not_finite(session, ids) if "nan" in kinds else {}
    now = database_now(session)
    facts = {run.id: _facts(run, since.get(run.id), not_finite.get(run.id), now) for _, run in matching}
    before = dict(compared)
    compared.clear()  # of runs that have ended, nothing is kept
    for rule, run in matching:
        tail = None
        if rule.metric is not None:
            key = (rule.id, rule.created_at, run.id)
            compared[key] = run.revision
            if before.get(key) != run.revision:
                tail = _tail(session, run.id, rule.metric, (rule.minutes or 0.0) * 60)
        for alert in met(rule, facts[run.id], tail):
            yield Due(rule, alert)


def _facts(run: Run, running_since: datetime | None, not_finite: str | None, now: datetime) -> RunFacts:
    silent_s = None
    if run.state == RunState.RUNNING and running_since is not None:
        latest = max(filter(None, (run.points_at, running_since)))
        silent_s = (now - latest).total_seconds()
    return RunFacts(
        id=run.id,
        name=run.name,
        attempt=run.attempt,
        agent_steps=run.agent_steps,
        score=run.score,
        is_early=run.agent_steps <= run.early_agent_steps,
        silent_s=silent_s,
        not_finite=not_finite,
    )


def _tail(session: Session, run_id: str, metric: str, duration_s: float) -> Tail | None:
    """The latest points of a metric, of at least this training time if it has as many."""
    row = next((row for row in metrics.list_series(session, [run_id], [metric]) if not row.source), None)
    if row is None:
        return None
    steps: list[int] = []
    times: list[float] = []
    values: list[float] = []
    for chunk in reversed(metrics.live_chunks(session, [row.id])[row.id][-_MAX_TAIL_CHUNKS:]):
        columns = metrics.points_of(session, [chunk], ("agent_steps", "wall_time_s", "value"))[chunk.id]
        steps[:0] = columns["agent_steps"].tolist()
        times[:0] = columns["wall_time_s"].tolist()
        values[:0] = columns["value"].tolist()
        if times[-1] - times[0] > duration_s:
            break
    return Tail(steps, times, values) if values else None


def _of_hosts(session: Session, every: Sequence[AlertRule], settings: Settings) -> Iterator[Due]:
    now = database_now(session)
    for host in host_rows.all_hosts(session):
        for rule in every:
            if host.last_seen_at < rule.created_at:
                continue
            for alert in _about_host(host, rule.kinds, now, settings):
                yield Due(rule, alert)


def _about_host(host: Host, kinds: Collection[str], now: datetime, settings: Settings) -> Iterator[NewAlert]:
    online = is_online(host, now, settings.lease_s)
    if "host_away" in kinds and not online and host.stopped_at is None:
        yield NewAlert(
            kind="host_away",
            level="warning",
            title=f"Host {host.id}: away",
            text=f"Its worker no longer responds. Last heartbeat: {host.last_seen_at:%Y-%m-%d %H:%M:%S} UTC.",
            subject_id=host.id,
            occurrence=f"{host.last_seen_at:%Y-%m-%dT%H:%M:%S}",
        )
    if "disk_filling" in kinds and online:
        load = HostLoad.model_validate(host.load)
        free = load.disk_free_bytes
        is_low = free is not None and free < FILLING * settings.min_free_disk_bytes
        if load.disk_problem is not None or is_low:
            yield NewAlert(
                kind="disk_filling",
                level="warning",
                title=f"Host {host.id}: disk filling"
                + ("" if free is None else f", {free / 2**30:.1f} GiB free"),
                text=load.disk_problem or "",
                subject_id=host.id,
                occurrence=f"{now:%Y-%m-%d}",
            )
