import signal
from collections.abc import Callable, Iterator
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep

import psutil
import pytest
from redis import Redis
from sqlalchemy import Engine

from backend.artifacts import ArtifactStore
from backend.db import Host, Run
from backend.db.clock import database_now
from backend.db.engine import reading, writing
from backend.hosts.schemas import HostLoad
from backend.live.bus import Bus
from backend.live.gameplay import WATCH_CHANNEL, WATCH_LAPSES_S, pictures_channel, read_picture
from backend.live_settings import repository as live_settings_rows
from backend.live_settings import service as live_settings
from backend.runs import service
from backend.settings import Settings
from backend.specs.environments import ENVIRONMENTS
from tests.support import own_world
from tests.support.databases import ON_SQLITE_FIRST
from tests.workers.support import (
    FAKE_ENGINE,
    FlakyContext,
    add_host,
    claim,
    fake_run,
    moves,
    processes_with,
    run_out,
    run_row,
    stored_points,
    until,
    until_state,
)
from workers import claims, host_agent, host_facts
from workers.host_agent import HostAgent
from workers.supervisor import PICTURE_TICK_S

pytestmark = [pytest.mark.service, ON_SQLITE_FIRST]

Agents = Callable[..., HostAgent]


@pytest.fixture
def agents(settings: Settings, engine: Engine) -> Iterator[Agents]:
    """Starts host agents; stops them afterwards and sees that nothing is left."""
    started: list[HostAgent] = []

    def start(away: list[bool] | None = None, **changes: object) -> HostAgent:
        mine = settings.model_copy(update=changes)
        context = FlakyContext(
            mine, engine, ArtifactStore(mine.artifacts), Bus(mine.redis), away if away is not None else []
        )
        agent = HostAgent(context, engine=FAKE_ENGINE)
        agent.start()
        started.append(agent)
        return agent

    yield start
    for agent in started:
        agent.stop(8)
    until(lambda: not processes_with(str(settings.runs_dir)))


def test_a_host_says_what_it_is(agents: Agents, engine: Engine, tmp_path: Path) -> None:
    agents(slots=3, queues=["cpu", "gpu"], environments_file=own_world.write(tmp_path))

    def told() -> Host | None:
        with reading(engine) as session:
            return session.get(Host, "a")

    host = until(told)
    assert (host.slots, host.queues, host.draining) == (3, ["cpu", "gpu"], False)
    assert host.cpu_count >= 1
    assert host.memory_bytes == psutil.virtual_memory().total
    assert host.devices[0] == "cpu"
    can_make = [name for name in ENVIRONMENTS if name != "CarRacing-v3" or find_spec("envpool")]
    assert host.environments == [*can_make, "Own/Line-v0", "Own/Pictures-v1"]
    assert [world["id"] for world in host.own_environments] == ["Own/Line-v0", "Own/Pictures-v1"]
    assert not any("entry_point" in world for world in host.own_environments)
    assert "numpy" in host.versions
    first = HostLoad.model_validate(host.load)
    assert first.memory_used_bytes
    later = until(lambda: (row := told()) and row.last_seen_at > host.last_seen_at and row)
    recent = HostLoad.model_validate(later.load).recent
    assert len(recent.cpu) == len(recent.memory) > len(first.recent.cpu)
    assert recent.memory[: len(first.recent.memory)] == first.recent.memory
    assert 0 < recent.memory[-1] < 1


def test_runs_are_claimed_while_slots_last_and_end_without_a_hand(agents: Agents, engine: Engine) -> None:
    made = [fake_run(engine, agent_steps=30, step_s=0.03) for _ in range(3)]
    agents(slots=2)
    until(lambda: run_row(engine, made[1].id).state == "running")
    assert run_row(engine, made[2].id).state == "queued"
    for run in made:
        until_state(engine, run.id, "finished")
        assert stored_points(engine, run.id) == list(range(1, 31))


def test_a_killed_engine_goes_on_without_a_hand(agents: Agents, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=40, die={"1": {"at": 15, "how": signal.SIGKILL}})
    agents()
    until_state(engine, run.id, "finished")
    assert stored_points(engine, run.id) == list(range(1, 41))
    assert moves(engine, run.id) == [
        "queued", "starting", "running", "queued", "starting", "running", "finished",
    ]  # fmt: skip


def test_a_wish_to_stop_reaches_the_engine(agents: Agents, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=10_000)
    agents()
    until_state(engine, run.id, "running")
    with writing(engine) as session:
        service.stop(session, run.id, kill=False)
    assert until_state(engine, run.id, "stopped").state_reason == "asked to stop"


def test_pictures_come_while_someone_watches_and_only_then(
    agents: Agents, engine: Engine, redis_url: str
) -> None:
    run = fake_run(engine, agent_steps=10_000)
    agents()
    until_state(engine, run.id, "running")
    with Redis.from_url(redis_url) as client, client.pubsub(ignore_subscribe_messages=True) as listener:
        listener.subscribe(pictures_channel(run.id))
        assert listener.get_message(timeout=1.0) is None
        client.publish(WATCH_CHANNEL, run.id)
        message = until(lambda: listener.get_message(timeout=1.0))
        agent_steps, jpeg = read_picture(message["data"])
        assert jpeg == b"picture"
        behind = run_row(engine, run.id).agent_steps - agent_steps
        assert abs(behind) < 200  # two seconds of this engine
        until(lambda: listener.get_message(timeout=2 * PICTURE_TICK_S) is None, 2 * WATCH_LAPSES_S)


def test_settings_reach_the_engine_and_its_answer_the_spec(agents: Agents, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=10_000)
    agents()
    until_state(engine, run.id, "running")

    def ask(changes: dict[str, float]) -> None:
        with writing(engine) as session:
            live_settings.request(session, run.id, changes, None)  # type: ignore[arg-type]

    def answered() -> list[str]:
        with reading(engine) as session:
            rows = live_settings_rows.all_versions(session, run.id)
        return [row.state for row in rows if row.state != "asked"]

    ask({"beta": 0.25})
    ask({"beta": 0.5})
    until(lambda: len(answered()) == 2)
    assert answered() == ["refused", "applied"]
    row = run_row(engine, run.id)
    assert (row.state, row.spec["config"]["beta"]) == ("running", 0.25)


def test_settings_wait_for_the_next_attempt(agents: Agents, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=10_000)
    add_host(engine, "dead")
    claim(engine, "dead", lease_s=0.1)
    with writing(engine) as session:
        live_settings.request(session, run.id, {"beta": 0.25}, None)  # type: ignore[arg-type]
    agents(lease_s=1.0)
    until(lambda: run_row(engine, run.id).spec["config"]["beta"] == 0.25)
    assert run_row(engine, run.id).attempt == 2


def test_a_poke_is_quicker_than_the_clock(agents: Agents, engine: Engine) -> None:
    agent = agents(reconcile_interval_s=600.0)
    run = fake_run(engine, agent_steps=10_000)
    until(lambda: agent.poke() or run_row(engine, run.id).state == "running")


def test_pokes_doubled_change_nothing(agents: Agents, engine: Engine) -> None:
    both = [agents(reconcile_interval_s=600.0, host_name=name) for name in ("a", "b")]
    made = [fake_run(engine, agent_steps=20) for _ in range(3)]

    def all_finished() -> bool:
        for agent in both:
            agent.poke()
        sleep(0.1)  # each poke is a round of the agent's
        return all(run_row(engine, run.id).state == "finished" for run in made)

    until(all_finished)
    for run in made:
        assert moves(engine, run.id) == ["queued", "starting", "running", "finished"]
        assert stored_points(engine, run.id) == list(range(1, 21))


def test_a_draining_host_finishes_what_it_has(agents: Agents, engine: Engine) -> None:
    first = fake_run(engine, agent_steps=60)
    agents()
    until_state(engine, first.id, "running")
    with writing(engine) as session:
        session.get_one(Host, "a").draining = True
    second = fake_run(engine)
    until_state(engine, first.id, "finished")
    seen = _last_seen(engine, "a")
    until(lambda: _last_seen(engine, "a") > seen)
    assert run_row(engine, second.id).state == "queued"
    with writing(engine) as session:
        session.get_one(Host, "a").draining = False
    until_state(engine, second.id, "finished")


def test_a_dead_hosts_run_is_taken_over(agents: Agents, engine: Engine) -> None:
    add_host(engine, "dead")
    run = fake_run(engine, agent_steps=20)
    claim(engine, "dead", lease_s=0.1)
    agents(lease_s=1.0)
    until_state(engine, run.id, "finished")
    assert moves(engine, run.id)[:5] == ["queued", "starting", "lost", "queued", "starting"]


def test_leases_are_kept(agents: Agents, engine: Engine) -> None:
    """Whenever a term is over its holder begins the next, and nobody finds a lease that has run out."""
    run = fake_run(engine, agent_steps=10_000)
    agents(lease_s=60.0)
    until_state(engine, run.id, "running")
    for _ in range(3):
        run_out(engine, run.id)
        until(lambda: _lease_holds(engine, run.id))
        with writing(engine) as session:
            assert claims.expire(session) == []
    assert moves(engine, run.id) == ["queued", "starting", "running"]


def test_after_an_outage_the_first_to_come_back_robs_nobody(
    agents: Agents, engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Leases run out while nobody can renew them; the rival is back first, and waits one full term."""
    clock_s = [0.0]
    monkeypatch.setattr(host_agent, "monotonic", lambda: clock_s[0])

    def a_term_passes() -> None:
        for _ in range(4):
            clock_s[0] += 20.0
            _two_rounds(engine, "b")

    run = fake_run(engine, agent_steps=10_000)
    its_outage: list[bool] = []
    agents(its_outage, lease_s=60.0)
    until_state(engine, run.id, "running")
    rivals_outage: list[bool] = []
    add_host(engine, "b")
    rival = agents(rivals_outage, lease_s=60.0, host_name="b")
    a_term_passes()
    assert rival._contact.may_expire()
    its_outage.append(True)
    until(lambda: "database.away" in caplog.text)
    rivals_outage.append(True)
    clock_s[0] += 100.0
    run_out(engine, run.id)
    rivals_outage.clear()
    _two_rounds(engine, "b")
    assert not _lease_holds(engine, run.id)
    assert run_row(engine, run.id).state == "running"
    its_outage.clear()
    until(lambda: _lease_holds(engine, run.id))
    a_term_passes()
    assert rival._contact.may_expire()
    assert moves(engine, run.id) == ["queued", "starting", "running"]


def _two_rounds(engine: Engine, host: str) -> None:
    """Wait until an agent has made a whole round from now on: it says that it is there as each begins."""
    for _ in range(2):
        seen = _last_seen(engine, host)
        until(lambda seen=seen: _last_seen(engine, host) > seen)  # type: ignore[misc]


def _lease_holds(engine: Engine, run_id: str) -> bool:
    with reading(engine) as session:
        ends_at = session.get_one(Run, run_id).lease_expires_at
        return ends_at is not None and ends_at > database_now(session)


def _last_seen(engine: Engine, host: str) -> datetime:
    with reading(engine) as session:
        return session.get_one(Host, host).last_seen_at


def test_stopping_hands_everything_back(agents: Agents, engine: Engine) -> None:
    made = [fake_run(engine, agent_steps=10_000) for _ in range(2)]
    agent = agents(slots=2)
    for run in made:
        until_state(engine, run.id, "running")
    assert agent.stop(8)
    for run in made:
        row = run_row(engine, run.id)
        assert (row.state, row.state_reason) == ("queued", "its worker on a shuts down")
        assert row.agent_steps == stored_points(engine, run.id)[-1]


def test_stopping_does_not_wait_for_the_deaf(agents: Agents, engine: Engine, settings: Settings) -> None:
    run = fake_run(engine, agent_steps=10_000, deaf=True)
    agent = agents()
    until_state(engine, run.id, "running")
    assert not agent.stop(1)
    until(lambda: not processes_with(str(settings.runs_dir)))


def test_the_time_to_stop_runs_from_the_signal(
    agents: Agents, engine: Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Celery takes its own time between the signal and the end of its steps: that counts as well."""
    run = fake_run(engine, agent_steps=10_000, deaf=True)
    agent = agents()
    until_state(engine, run.id, "running")
    agent.begin_stop()
    monkeypatch.setattr(host_agent, "monotonic", lambda: monotonic() + 3600)
    assert not agent.stop(3600)
    until(lambda: not processes_with(str(settings.runs_dir)))


def test_a_run_that_would_not_fit_waits(
    agents: Agents, engine: Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The machine's memory is what it is: the test says how much of it is free.
    estimate = fake_run(engine, agent_steps=10_000).memory_estimate_bytes
    second = fake_run(engine, agent_steps=10_000)
    monkeypatch.setattr(host_facts, "available_memory_bytes", lambda: int(estimate * 1.5))
    agent = agents(slots=2)
    until(lambda: len(processes_with(str(settings.runs_dir))) == 1)
    rounds: list[int] = []
    monkeypatch.setattr(agent, "_claim_job", lambda: rounds.append(1))
    until(lambda: len(rounds) >= 3)
    assert run_row(engine, second.id).state == "queued"


def test_a_lost_run_comes_back_to_the_same_host(agents: Agents, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=100, step_s=0.03)
    agents(reconcile_interval_s=0.5)
    until_state(engine, run.id, "running")
    run_out(engine, run.id)
    with writing(engine) as session:
        claims.expire(session)
    until_state(engine, run.id, "finished")
    assert stored_points(engine, run.id) == list(range(1, 101))
    assert run_row(engine, run.id).attempt == 2
