import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from redis import Redis
from sqlalchemy import Engine

from backend.coordination import claims
from backend.db import Host, Run
from backend.db.clock import database_now
from backend.db.engine import reading, writing
from backend.fleet.hosts import service as hosts
from backend.platform.artifacts import ArtifactStore
from backend.platform.settings import Settings
from backend.pubsub.bus import WATCH_CHANNEL, Bus, frames_channel
from backend.runs.checkpoints import repository as checkpoints
from backend.runs.live_settings import repository as live_settings_rows
from backend.runs.live_settings import service as live_settings
from backend.runs.runs import actions
from backend.specs.environments import ENVIRONMENTS
from backend.specs.host_load import HostLoad
from tests.support import custom_environment, nvml
from tests.support.frames import unpack_frame
from tests.support.nvml import FakeGpu
from tests.support.packages import Site
from tests.support.rows import add_host, make_run
from tests.support.waiting import PATIENCE_S, until
from tests.workers.support import (
    ENDLESS,
    FAKE_ENGINE,
    FlakyContext,
    claim,
    engines_of,
    expire_lease,
    fake_run,
    lose,
    moves,
    run_row,
    stored_points,
    until_state,
)
from workers import host_agent, host_facts, jobs, supervisor
from workers.engine.training.event_log import read_frames
from workers.host_agent import HostAgent
from workers.supervisor import FRAME_TICK_S

pytestmark = pytest.mark.service

Agents = Callable[..., HostAgent]


@pytest.fixture
def agents(settings: Settings, engine: Engine) -> Iterator[Agents]:
    """Return a function that starts host agents; stop them afterwards and check that no engine is left."""
    started: list[HostAgent] = []

    def start(outage: list[bool] | None = None, **changes: object) -> HostAgent:
        mine = settings.model_copy(update=changes)
        context = FlakyContext(
            mine, engine, ArtifactStore(mine.artifacts), Bus(mine.redis), outage if outage is not None else []
        )
        agent = HostAgent(context, command=FAKE_ENGINE)
        agent.start()
        started.append(agent)
        return agent

    yield start
    for agent in started:
        agent.stop(8)
    until(lambda: not engines_of(settings.runs_dir))


def test_agent_sends_host_facts_and_load(
    agents: Agents, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path / "site")
    site.folder.mkdir()
    site.install_environment("lines-of-agent", environment="Custom/Package-v0")
    monkeypatch.syspath_prepend(str(site.folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))  # of children that try it
    agents(slots=3, queues=["cpu", "gpu"], environments_file=custom_environment.write(tmp_path))

    def announced() -> Host | None:
        with reading(engine) as session:
            return session.get(Host, "a")

    host = until(announced)
    assert (host.slots, host.queues, host.draining) == (3, ["cpu", "gpu"], False)
    assert host.cpu_count >= 1
    assert host.memory_bytes == host_facts.memory_bytes()
    assert host.devices[0].split(" (")[0] == "cpu"
    shipped = [name for name in ENVIRONMENTS if name != "CarRacing-v3" or find_spec("envpool")]
    custom = ["Custom/Line-v0", "Custom/Frames-v1", "Custom/Package-v0"]
    assert host.environments == [*shipped, *custom]
    assert [env["id"] for env in host.custom_environments] == custom
    assert host.custom_environments[-1]["package"] == "lines-of-agent==1.0"
    assert host.versions["lines-of-agent"] == "1.0"
    assert not any("entry_point" in env for env in host.custom_environments)
    assert "numpy" in host.versions
    first = HostLoad.model_validate(host.load)
    assert first.memory_used_bytes
    assert first.claimable_memory_bytes

    def announced_again() -> Host | None:
        row = announced()
        return row if row is not None and row.last_seen_at > host.last_seen_at else None

    later = until(announced_again)
    recent = HostLoad.model_validate(later.load).recent
    assert len(recent.cpu) == len(recent.memory) > len(first.recent.cpu)
    assert recent.memory[: len(first.recent.memory)] == first.recent.memory
    assert 0 < recent.memory[-1] < 1
    assert recent.duration_s is not None
    assert recent.duration_s >= 0


@pytest.mark.long
def test_agent_claims_runs_up_to_its_slots_and_finishes_them(
    agents: Agents, engine: Engine, settings: Settings
) -> None:
    created = [fake_run(engine, agent_steps=30, wait_at=5) for _ in range(2)]
    created.append(fake_run(engine, agent_steps=30))
    agents(slots=2)
    for run in created[:2]:
        until_state(engine, run.id, "running")
    _two_rounds(engine, "a")
    assert run_row(engine, created[2].id).state == "queued"
    for run in created[:2]:
        (settings.runs_dir / run.id / "go").touch()
    for run in created:
        until_state(engine, run.id, "finished")
        assert stored_points(engine, run.id) == list(range(1, 31))


def test_leases_are_renewed_while_many_slots_are_filled(
    agents: Agents, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a claim takes as long as a lease, one follows each renewal."""
    created = [fake_run(engine, agent_steps=ENDLESS) for _ in range(3)]
    calls: list[str] = []
    renew, claim_run = claims.renew, claims.claim

    def record_renewal(*arguments: Any, **options: Any) -> Any:
        calls.append("renew")
        return renew(*arguments, **options)

    def record_claim(*arguments: Any, **options: Any) -> Any:
        calls.append("claim")
        return claim_run(*arguments, **options)

    monkeypatch.setattr(claims, "renew", record_renewal)
    monkeypatch.setattr(claims, "claim", record_claim)
    clock = itertools.count(0.0, 3600.0)
    with monkeypatch.context() as patched:
        patched.setattr(host_agent, "monotonic", lambda: next(clock))
        agents(slots=3)
        for run in created:
            until_state(engine, run.id, "running")
    claimed = [at for at, call in enumerate(calls) if call == "claim"][:3]
    assert [calls[at - 1] for at in claimed] == ["renew"] * 3


def test_host_with_two_gpus_trains_a_run_on_each(
    agents: Agents, engine: Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    _two_gpus(monkeypatch)
    created = [fake_run(engine, agent_steps=ENDLESS) for _ in range(3)]
    agents()
    for run in created[:2]:
        until_state(engine, run.id, "running")
    _two_rounds(engine, "a")
    assert run_row(engine, created[2].id).state == "queued"
    assert sorted(_gpus_of(settings)) == ["GPU-0", "GPU-1"]


def test_runs_without_gpu_get_none_and_surplus_runs_share_one(
    agents: Agents, engine: Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    _two_gpus(monkeypatch)
    changes: list[dict[str, Any]] = [{"device": "cpu"}, {"algorithm": "a3c"}, {"device": "cuda"}, {}, {}]
    created = [make_run(engine, stop={"agent_steps": ENDLESS}, **changed) for changed in changes]
    agents(slots=5)
    for run in created:
        until_state(engine, run.id, "running")
    assert sorted(_gpus_of(settings)) == ["", "", "GPU-0", "GPU-1", "GPU-1"]


def _two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the worker have two GPUs, the second with less memory in use, and memory for any number of runs."""
    nvml.install_with_pytorch(monkeypatch, FakeGpu(uuid="GPU-0"), FakeGpu(uuid="GPU-1", memory_used_bytes=0))
    monkeypatch.setattr(host_facts, "available_memory_bytes", lambda: 2**50)


def _gpus_of(settings: Settings) -> list[str]:
    """What each engine's `CUDA_VISIBLE_DEVICES` is; empty if it has none."""
    engines = engines_of(settings.runs_dir)
    return [process.environ().get("CUDA_VISIBLE_DEVICES", "") for process in engines]


@pytest.mark.long
def test_agent_resumes_run_of_killed_engine(agents: Agents, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=40, die={"1": {"at": 15, "how": signal.SIGKILL}})
    agents()
    until_state(engine, run.id, "finished")
    assert stored_points(engine, run.id) == list(range(1, 41))
    assert moves(engine, run.id) == [
        "queued", "starting", "running", "queued", "starting", "running", "finished",
    ]  # fmt: skip


def test_stop_request_reaches_engine(agents: Agents, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=ENDLESS)
    agents()
    until_state(engine, run.id, "running")
    with writing(engine) as session:
        actions.stop(session, run.id, kill=False)
    assert until_state(engine, run.id, "stopped").state_reason == "stop requested"


@pytest.mark.long
def test_frames_are_published_only_while_watched(
    agents: Agents, engine: Engine, settings: Settings, redis_url: str
) -> None:
    run = fake_run(engine, agent_steps=ENDLESS)
    agents()
    until_state(engine, run.id, "running")
    with Redis.from_url(redis_url) as client, client.pubsub(ignore_subscribe_messages=True) as listener:
        listener.subscribe(frames_channel(run.id))
        assert listener.get_message(timeout=1.0) is None
        assert listener.get_message(timeout=1.0) is None  # the first was the subscription's confirmation
        recorded = run_row(engine, run.id).agent_steps

        def watched_frame() -> dict[str, Any] | None:
            client.publish(WATCH_CHANNEL, run.id)  # at intervals, as the web process does
            message: dict[str, Any] | None = listener.get_message(timeout=1.0)
            return message

        agent_steps, jpeg = unpack_frame(until(watched_frame)["data"])
        assert jpeg == b"frame"
        log = settings.runs_dir / run.id / "attempts" / "1" / "events.log"
        logged = max(
            event.agent_steps for frame, _ in read_frames(log) for event in frame if event.type == "report"
        )
        assert recorded <= agent_steps <= logged  # no older than the first viewer, and none from the future
        until(lambda: listener.get_message(timeout=2 * FRAME_TICK_S) is None)


def test_settings_reach_engine_and_applied_ones_reach_spec(agents: Agents, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=ENDLESS)
    agents()
    until_state(engine, run.id, "running")

    def request(changes: dict[str, float]) -> None:
        with writing(engine) as session:
            live_settings.request(session, run.id, changes, None)

    def settled() -> list[str]:
        with reading(engine) as session:
            rows = live_settings_rows.all_versions(session, run.id)
        return [row.state for row in rows if row.state != "asked"]

    request({"beta": 0.25})
    request({"beta": 0.5})
    until(lambda: len(settled()) == 2)
    assert settled() == ["refused", "applied"]
    row = run_row(engine, run.id)
    assert (row.state, row.spec["config"]["beta"]) == ("running", 0.25)


def test_checkpoint_on_request_is_saved_once_and_training_goes_on(agents: Agents, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=ENDLESS, checkpoint_every=ENDLESS)
    agents()
    until_state(engine, run.id, "running")
    for n in (1, 2):
        with writing(engine) as session:
            asked = actions.request_checkpoint(session, run.id)
            assert asked.checkpoint_requested_at is not None
            revision = asked.revision
            assert actions.request_checkpoint(session, run.id).revision == revision, "asked for already"
        until(lambda: run_row(engine, run.id).checkpoint_requested_at is None)
        with reading(engine) as session:
            assert checkpoints.stored_size(session, run.id)[0] == n
    assert run_row(engine, run.id).state == "running"


def test_settings_pending_at_host_loss_are_applied_by_next_attempt(agents: Agents, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=ENDLESS)
    add_host(engine, "dead")
    claim(engine, "dead")
    with writing(engine) as session:
        live_settings.request(session, run.id, {"beta": 0.25}, None)
        lose(session, run.id)
    agents()
    until(lambda: run_row(engine, run.id).spec["config"]["beta"] == 0.25)
    assert run_row(engine, run.id).attempt == 2


def test_wake_claims_run_before_next_interval(agents: Agents, engine: Engine) -> None:
    agent = agents(reconcile_interval_s=600.0)
    run = fake_run(engine, agent_steps=ENDLESS)

    def runs_after_wake() -> bool:
        agent.wake()
        return run_row(engine, run.id).state == "running"

    until(runs_after_wake)


def test_repeated_wakes_of_two_agents_run_each_run_once(agents: Agents, engine: Engine) -> None:
    # A lease far longer than either agent may have to wait for a processor.
    both = [agents(reconcile_interval_s=600.0, lease_s=3600.0, host_name=name) for name in ("a", "b")]
    created = [fake_run(engine, agent_steps=20) for _ in range(3)]

    def all_finished() -> bool:
        for agent in both:
            agent.wake()
        return all(run_row(engine, run.id).state == "finished" for run in created)

    until(all_finished, every_s=0.1)  # each wake causes a round of the agent
    for run in created:
        assert moves(engine, run.id) == ["queued", "starting", "running", "finished"]
        assert stored_points(engine, run.id) == list(range(1, 21))


@pytest.mark.long
def test_draining_host_finishes_its_run_and_claims_no_other(agents: Agents, engine: Engine) -> None:
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


def test_run_of_dead_host_is_claimed_after_lease_expiry(
    agents: Agents, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock_s = [0.0]
    monkeypatch.setattr(host_agent, "since_boot_s", lambda: clock_s[0])
    for host in ("a", "dead"):
        add_host(engine, host)
    run = fake_run(engine, agent_steps=20)
    claim(engine, "dead")
    expire_lease(engine, run.id)
    agents()
    _two_rounds(engine, "a")
    assert run_row(engine, run.id).state == "starting"  # the agent waits for the length of a lease first
    _pass_one_lease(engine, "a", clock_s)
    until_state(engine, run.id, "finished")
    assert moves(engine, run.id)[:5] == ["queued", "starting", "lost", "queued", "starting"]


def test_agent_renews_leases_of_its_runs(agents: Agents, engine: Engine) -> None:
    """The holder renews an expired lease before any other host finds it expired."""
    run = fake_run(engine, agent_steps=ENDLESS)
    agents()
    until_state(engine, run.id, "running")
    for _ in range(3):
        expire_lease(engine, run.id)
        until(lambda: _lease_holds(engine, run.id))
        with writing(engine) as session:
            assert claims.expire(session) == []
    assert moves(engine, run.id) == ["queued", "starting", "running"]


@pytest.mark.long
def test_first_host_after_database_outage_waits_one_lease_before_expiring_others(
    agents: Agents, engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Leases expire while no host can renew them; the rival reconnects first and waits one full lease."""
    clock_s = [0.0]
    monkeypatch.setattr(host_agent, "since_boot_s", lambda: clock_s[0])

    run = fake_run(engine, agent_steps=ENDLESS)
    outage: list[bool] = []
    agents(outage)
    until_state(engine, run.id, "running")
    rival_outage: list[bool] = []
    add_host(engine, "b")
    rival = agents(rival_outage, host_name="b")
    _pass_one_lease(engine, "b", clock_s)
    assert rival.liveness.may_expire()
    outage.append(True)
    rival_outage.append(True)
    until(lambda: len(_threads_without_database(caplog)) == 2)  # no round from before is under way
    clock_s[0] += 100.0
    expire_lease(engine, run.id)
    rival_outage.clear()
    _two_rounds(engine, "b")
    assert not _lease_holds(engine, run.id)
    assert run_row(engine, run.id).state == "running"
    outage.clear()
    until(lambda: _lease_holds(engine, run.id))
    _pass_one_lease(engine, "b", clock_s)
    assert rival.liveness.may_expire()
    assert moves(engine, run.id) == ["queued", "starting", "running"]


def test_stop_is_recorded_until_the_next_heartbeat(agents: Agents, engine: Engine) -> None:
    def runs() -> bool:
        with reading(engine) as session:
            return hosts.is_alive(session, "a", 3600.0)

    first = agents()
    until(runs)
    assert first.stop(8)
    assert not runs()
    agents()
    until(runs)


def test_killed_worker_is_followed_by_one_of_its_home_at_once(
    agents: Agents, engine: Engine, settings: Settings
) -> None:
    add_host(engine, "a", worker_id=host_facts.worker_id(settings.home_dir))
    seen = _last_seen(engine, "a")
    agents(lease_s=3600.0)
    until(lambda: _last_seen(engine, "a") > seen)


def test_worker_of_another_home_waits_until_the_name_is_free(
    agents: Agents, engine: Engine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = agents(slots=0, lease_s=3600.0)
    until(lambda: _worker_of(engine, "a"))
    holder = _worker_of(engine, "a")
    run = fake_run(engine, agent_steps=20)
    agents(home_dir=tmp_path / "another", lease_s=3600.0)
    until(lambda: "host.name_taken" in caplog.messages)
    _two_rounds(engine, "a")
    assert _worker_of(engine, "a") == holder
    assert run_row(engine, run.id).state == "queued"
    assert first.stop(8)
    until_state(engine, run.id, "finished")
    assert _worker_of(engine, "a") != holder
    assert caplog.messages.count("host.name_taken") == 1


def _worker_of(engine: Engine, host: str) -> str | None:
    with reading(engine) as session:
        row = session.get(Host, host)
        return row.worker_id if row is not None else None


def _threads_without_database(caplog: pytest.LogCaptureFixture) -> set[int | None]:
    """The threads of host agents that found the database unavailable. Their other threads log the same."""
    return {
        line.thread
        for line in caplog.records
        if line.getMessage() == "database.unavailable" and line.threadName == "host-agent"
    }


def _two_rounds(engine: Engine, host: str) -> None:
    """Wait until an agent has completed a whole round: it announces itself at the start of each."""
    for _ in range(2):
        seen = _last_seen(engine, host)
        until(lambda seen=seen: _last_seen(engine, host) > seen)  # type: ignore[misc]


def _pass_one_lease(engine: Engine, host: str, clock_s: list[float]) -> None:
    """Let an agent whose clock is `clock_s` look after its leases for more than the length of one."""
    for _ in range(4):
        clock_s[0] += 20.0
        _two_rounds(engine, host)


def _lease_holds(engine: Engine, run_id: str) -> bool:
    with reading(engine) as session:
        ends_at = session.get_one(Run, run_id).lease_expires_at
        return ends_at is not None and ends_at > database_now(session)


def _last_seen(engine: Engine, host: str) -> datetime:
    with reading(engine) as session:
        return session.get_one(Host, host).last_seen_at


def test_stop_releases_every_run_with_checkpoint(
    agents: Agents, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "SHUTDOWN_STOP_TIMEOUT_S", PATIENCE_S)
    created = [fake_run(engine, agent_steps=ENDLESS) for _ in range(2)]
    agent = agents(slots=2)
    for run in created:
        until_state(engine, run.id, "running")
    assert agent.stop(PATIENCE_S)
    for run in created:
        row = run_row(engine, run.id)
        assert (row.state, row.state_reason) == ("queued", "its worker on a is shutting down")
        assert row.agent_steps == stored_points(engine, run.id)[-1]


def test_stop_kills_engine_that_ignores_stop_after_timeout(
    agents: Agents, engine: Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that the agent kills the engine, not its supervisor.
    monkeypatch.setattr(supervisor, "SHUTDOWN_STOP_TIMEOUT_S", 2 * PATIENCE_S)
    run = fake_run(engine, agent_steps=ENDLESS, ignores_stop=True)
    agent = agents()
    until_state(engine, run.id, "running")
    assert not agent.stop(1)
    until(lambda: not engines_of(settings.runs_dir))


def test_stop_timeout_counts_from_begin_stop(
    agents: Agents, engine: Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time that Celery takes between the signal and the end of its steps counts too."""
    monkeypatch.setattr(supervisor, "SHUTDOWN_STOP_TIMEOUT_S", 2 * PATIENCE_S)
    run = fake_run(engine, agent_steps=ENDLESS, ignores_stop=True)
    agent = agents()
    until_state(engine, run.id, "running")
    agent.begin_stop()
    monkeypatch.setattr(host_agent, "monotonic", lambda: monotonic() + 3600)
    assert not agent.stop(3600)
    until(lambda: not engines_of(settings.runs_dir))


def test_run_larger_than_free_memory_stays_queued(
    agents: Agents, engine: Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The test sets how much memory is free.
    estimate = fake_run(engine, agent_steps=ENDLESS).memory_estimate_bytes
    second = fake_run(engine, agent_steps=ENDLESS)
    monkeypatch.setattr(host_facts, "available_memory_bytes", lambda: int(estimate * 1.5))
    agents(slots=2)
    until(lambda: len(engines_of(settings.runs_dir)) == 1)
    rounds: list[int] = []
    # A round of the agent claims a job last, after as many runs as it can.
    monkeypatch.setattr(jobs, "claim", lambda *_, **options: rounds.append(1))
    until(lambda: len(rounds) >= 3)
    assert run_row(engine, second.id).state == "queued"


def test_host_with_little_free_disk_space_claims_nothing_and_reports_it(
    agents: Agents, engine: Engine
) -> None:
    run = fake_run(engine)
    agents(min_free_disk_bytes=2**60)

    def load() -> HostLoad | None:
        with reading(engine) as session:
            host = session.get(Host, "a")
            return HostLoad.model_validate(host.load) if host is not None else None

    reported = until(load)
    assert reported.disk_bytes is not None
    assert reported.disk_free_bytes is not None
    assert reported.disk_problem is not None
    assert "claims no runs with less than 1,099,511,627,776 MiB" in reported.disk_problem
    _two_rounds(engine, "a")
    assert run_row(engine, run.id).state == "queued"


@pytest.mark.long
def test_lost_run_resumes_on_the_same_host(agents: Agents, engine: Engine) -> None:
    run = fake_run(engine, agent_steps=100, wait_at=30)
    agents(reconcile_interval_s=0.5)
    until_state(engine, run.id, "running")
    with writing(engine) as session:
        lose(session, run.id)
    until_state(engine, run.id, "finished")
    assert stored_points(engine, run.id) == list(range(1, 101))
    assert run_row(engine, run.id).attempt == 2
