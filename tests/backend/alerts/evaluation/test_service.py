from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, select

from backend.alerts.alerts import service as alerts
from backend.analysis.metrics import repository as metrics
from backend.db import AlertRule, AlertSignal, Delivery, Experiment, Host, Run, Transition, User
from backend.db.alert import record_signal
from backend.db.base import new_id
from backend.db.engine import reading, writing
from backend.platform.principals import Role
from backend.runs.runs import service as runs
from backend.specs.events import PointsEvent
from backend.specs.states import RunState
from tests.support.alerts import evaluate, inbox, make_rule, make_user
from tests.support.rows import add_host, make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service


def _move(engine: Engine, run_id: str, *states: RunState) -> None:
    with writing(engine) as session:
        run = runs.get(session, run_id, for_update=True)
        for state in states:
            runs.transition(session, run, state, "for the test")


def _points(engine: Engine, run_id: str, *values: float, metric: str = "loss/value") -> None:
    n = len(values)
    columns: dict[str, Any] = {"agent_steps": [*range(n)], "frames": [*range(n)], "episodes": [0] * n}
    event = PointsEvent(metric=metric, wall_time_s=[60.0 * i for i in range(n)], value=[*values], **columns)
    with writing(engine) as session:
        run = runs.get(session, run_id, for_update=True)
        metrics.append(session, run_id, 1, runs.touch(session, run), [event])


def test_end_of_a_run_is_an_alert_of_each_rule_about_it_once(service: RunningService) -> None:
    engine = service.engine
    ann, bob, eve = make_user(engine), make_user(engine), make_user(engine, Role.VIEWER)
    run = make_run(engine, RunState.RUNNING, group="lab", project="night", name="PAAC")
    make_rule(engine, ann, "finished", "failed")
    make_rule(engine, ann, "failed", group="lab")
    make_rule(engine, bob, "failed", group="other")
    make_rule(engine, bob, "failed", project="other")
    make_rule(engine, bob, "lost", project="night")
    make_rule(engine, eve, "failed", "lost", run_id=run.id)
    _move(engine, run.id, RunState.LOST, RunState.QUEUED, RunState.STARTING, RunState.FAILED)
    evaluate(service)
    evaluate(service)
    assert [alert.title for alert in inbox(engine, ann)] == ["PAAC: failed"], "one for both of her rules"
    assert [alert.title for alert in inbox(engine, bob)] == ["PAAC: lost"]
    [lost, failed] = inbox(engine, eve)
    assert [lost.kind, lost.level, failed.kind, failed.level] == ["lost", "warning", "failed", "error"]
    assert (failed.text, failed.subject_id, failed.read_at) == ("for the test", run.id, None)
    with reading(engine) as session:
        assert session.scalars(select(AlertSignal)).all() == []


def test_rule_is_not_about_what_happened_before_it(service: RunningService) -> None:
    engine, ann = service.engine, make_user(service.engine)
    make_run(engine, RunState.FAILED)
    make_rule(engine, ann, "failed")
    evaluate(service)
    assert inbox(engine) == []


def test_same_attempt_is_alerted_once_and_the_next_one_again(service: RunningService) -> None:
    engine, ann = service.engine, make_user(service.engine)
    run = make_run(engine, RunState.RUNNING)
    make_rule(engine, ann, "lost")
    for attempt in (1, 1, 2):
        with writing(engine) as session:
            record_signal(session, "lost", run.id, attempt=attempt)
        evaluate(service)
    assert [alert.attempt for alert in inbox(engine)] == [1, 2]


def test_rule_has_a_limited_number_of_alerts_a_day_and_says_so(service: RunningService) -> None:
    engine, ann = service.engine, make_user(service.engine)
    run = make_run(engine, RunState.RUNNING, name="PAAC")
    make_rule(engine, ann, "lost")
    with writing(engine) as session:
        for attempt in range(alerts.MAX_PER_DAY + 3):
            record_signal(session, "lost", run.id, attempt=attempt)
    evaluate(service)
    raised = inbox(engine)
    assert [alert.kind for alert in raised] == ["lost"] * alerts.MAX_PER_DAY + ["limit"]
    assert raised[-1].title == "No more alerts today: PAAC: lost"


def test_lasting_conditions_are_alerts_once_for_each_attempt(service: RunningService) -> None:
    engine, ann = service.engine, make_user(service.engine)
    run = make_run(engine, RunState.RUNNING, name="PAAC")
    make_rule(engine, ann, "metric", metric="loss/value", comparison="above", value=5, minutes=2)
    make_rule(engine, ann, "nan", "score", score=10)
    make_rule(engine, ann, "no_points", minutes=5)
    evaluate(service)
    assert inbox(engine) == []
    _points(engine, run.id, 6, 7, 8)
    _points(engine, run.id, 1, float("nan"), metric="loss/td")
    with writing(engine) as session:
        row = session.get_one(Run, run.id)
        row.score, row.agent_steps = 10.5, 700
    evaluate(service)
    evaluate(service)
    titles = ["PAAC: loss/value above 5 for 2 min", "PAAC: loss/td is not finite", "PAAC: score 10 reached"]
    assert [alert.title for alert in inbox(engine)] == titles


def test_what_a_run_reached_at_its_end_is_not_missed(service: RunningService) -> None:
    engine, ann = service.engine, make_user(service.engine)
    run = make_run(engine, RunState.RUNNING, name="PAAC")
    make_rule(engine, ann, "score", score=10)
    with writing(engine) as session:
        row = session.get_one(Run, run.id)
        row.score, row.agent_steps = 11.0, 700
    _move(engine, run.id, RunState.FINISHED)
    evaluate(service)
    assert [alert.title for alert in inbox(engine)] == ["PAAC: score 10 reached"]


def test_run_without_points_is_silent_since_it_began_to_run(service: RunningService) -> None:
    engine, ann = service.engine, make_user(service.engine)
    run = make_run(engine, RunState.RUNNING, name="PAAC")
    make_rule(engine, ann, "no_points", minutes=5)
    evaluate(service)
    assert inbox(engine) == []
    with writing(engine) as session:
        for transition in session.scalars(select(Transition).where(Transition.run_id == run.id)):
            transition.time -= timedelta(minutes=6)
    evaluate(service)
    assert [alert.title for alert in inbox(engine)] == ["PAAC: no points for 5 min"]


def test_hosts_that_are_away_or_full_are_alerts(service: RunningService) -> None:
    engine, ann = service.engine, make_user(service.engine)
    for name in ("away", "full", "stopped", "well"):
        add_host(engine, name)
    make_rule(engine, ann, "host_away", "disk_filling")
    with writing(engine) as session:
        for name, age_s in (("away", 60), ("stopped", 60), ("full", 0), ("well", 0)):
            host = session.get_one(Host, name)
            host.last_seen_at = datetime.now(UTC) - timedelta(seconds=age_s)
            host.load = {"disk_free_bytes": 0 if name == "full" else 2**50}
        session.get_one(Host, "stopped").stopped_at = datetime.now(UTC)
        for rule in session.scalars(select(AlertRule)):
            rule.created_at = datetime.now(UTC) - timedelta(hours=1)
    evaluate(service)
    evaluate(service)
    assert sorted(alert.title for alert in inbox(engine)) == [
        "Host away: away",
        "Host full: disk filling, 0.0 GiB free",
    ]


def test_end_of_a_sweep_is_an_alert_of_rules_about_all(service: RunningService) -> None:
    engine, ann = service.engine, make_user(service.engine)
    make_rule(engine, ann, "sweep_done")
    with writing(engine) as session:
        row = Experiment(
            id=new_id(), kind="sweep", name="rates", spec={}, state="finished", created_at=datetime.now(UTC)
        )
        session.add(row)
        record_signal(session, "sweep_done", row.id, text="every run has ended")
        record_signal(session, "study_done", row.id)
    evaluate(service)
    assert [alert.title for alert in inbox(engine)] == ["Sweep rates: done"]


def test_alert_of_a_script_is_in_the_inbox_of_who_started_it(service: RunningService) -> None:
    engine, ann, bob = service.engine, make_user(service.engine), make_user(service.engine)
    run = make_run(engine, RunState.RUNNING, name="PAAC")
    make_rule(engine, bob, "script")
    with writing(engine) as session:
        session.get_one(Run, run.id).created_by = ann.id
        for _ in range(2):
            record_signal(session, "script", run.id, level="error", title="collapse", text="<b>entropy</b>")
    evaluate(service)
    for owner in (ann, bob):
        titles = [(alert.title, alert.text) for alert in inbox(engine, owner)]
        assert titles == [("PAAC: collapse", "<b>entropy</b>")] * 2


def test_targets_get_nothing_for_owners_who_are_viewers_now(service: RunningService) -> None:
    engine, ann = service.engine, make_user(service.engine)
    body = {"name": "lab", "secret_url": "https://hooks.example/x"}
    target = service.client.post("/api/v1/alert-targets", json=body).json()["id"]
    make_rule(engine, ann, "failed", targets=[target])
    url = "/api/v1/alert-targets"
    assert service.client.get(url).json()["items"][0]["name"] == "lab"
    with writing(engine) as session:
        session.get_one(User, ann.id).role = Role.VIEWER
    _move(engine, make_run(engine).id, RunState.FAILED)
    evaluate(service)
    assert len(inbox(engine, ann)) == 1
    with reading(engine) as session:
        assert session.scalars(select(Delivery)).all() == []
