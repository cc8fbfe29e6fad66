"""Asynchronous actor-learners as processes: what they share, and what happens when they or the engine die."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic
from typing import Any

import psutil
import pytest
import torch

from backend.specs.events import (
    CheckpointSavedEvent,
    EndedEvent,
    LogEvent,
    PointsEvent,
    SettingsChangedEvent,
    StartedEvent,
)
from backend.specs.run import RunSpec, parse_run_spec
from tests.support.engine_process import await_event, await_events, logged
from tests.support.shared_names import named_memory
from tests.support.waiting import PATIENCE_S, Patience
from workers.engine.methods.asynchronous.learner import HogwildLearner
from workers.engine.methods.base import StepResult
from workers.engine.methods.registry import METHODS
from workers.engine.processes.child import ChildFailedError
from workers.engine.training import checkpoint
from workers.engine.training.event_log import read_frames
from workers.engine.training.loop import Training

pytestmark = pytest.mark.service


def spec_of(algorithm: str = "a3c", stop: dict[str, Any] | None = None, **config: Any) -> RunSpec:
    return parse_run_spec(
        {
            "algorithm": algorithm,
            "environment": "CartPole-v1",
            "stop": stop or {"wall_time_s": 300},
            "config": {"evaluation_episodes": 0, "n_actors": 2, **config},
        }
    )


START_S = 30.0
"""For 64 actors on two cores."""
ALL_REPORT_S = 1_200.0
"""Deadline for as many on a busy machine."""
FORK_SERVER_FDS = 4
"""The fork server and Python's watch over shared memory, which stay for the next learner."""


@pytest.fixture
def started() -> Iterator[Callable[[RunSpec], HogwildLearner]]:
    learners: list[HogwildLearner] = []

    def start(spec: RunSpec) -> HogwildLearner:
        learner = METHODS[spec.algorithm].learner(spec)
        assert isinstance(learner, HogwildLearner)
        learners.append(learner)
        return learner

    yield start
    for learner in learners:
        learner.close()


def actors() -> list[psutil.Process]:
    """Processes of this one that map the vectors: the fork server's children."""
    children = psutil.Process().children(recursive=True)
    return [child for child in children if _vectors(child.pid)]


def _vectors(pid: int) -> set[str]:
    """Inodes of the shared vectors a process maps."""
    with suppress(OSError):
        maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
        return {line.split()[4] for line in maps if "/memfd:callboard" in line}
    return set()


def advance_until(learner: HogwildLearner, enough: Callable[[StepResult], bool]) -> StepResult:
    patience = Patience()
    while patience.lasts() and not enough(made := learner.advance(0.0, watched=False)):
        pass
    return made


def test_g_starts_at_its_initial_value(started: Callable[[RunSpec], HogwildLearner]) -> None:
    learner = started(spec_of(rmsprop_initial_g=0.5, n_actors=1))
    assert set(learner.vectors.statistics(learner.config)["g"].tolist()) == {0.5}


def test_actors_share_theta_and_g(started: Callable[[RunSpec], HogwildLearner]) -> None:
    learner = started(spec_of())
    theta = learner.vectors.theta
    before = theta.clone()
    assert not learner.vectors.statistics(learner.config)["g"].any()
    patience = Patience()
    while (
        patience.lasts() and min(learner.counts.of(k)[2] for k in range(2)) == 0
    ):  # until both have made an update
        learner.advance(0.0, watched=False)
    assert not torch.equal(theta, before)
    assert learner.vectors.statistics(learner.config)["g"].any()
    mine = _vectors(os.getpid())
    assert [_vectors(actor.pid) & mine == _vectors(actor.pid) for actor in actors()] == [True, True]


@pytest.mark.parametrize("all_of_them", [pytest.param(False, marks=pytest.mark.long), True])
def test_killed_actor_is_replaced_and_leaves_nothing(all_of_them: bool) -> None:
    handles = psutil.Process().num_fds()
    learner = METHODS["a3c"].learner(spec_of())
    assert isinstance(learner, HogwildLearner)
    with closing(learner):
        advance_until(learner, lambda made: made.updates > 0)
        first = actors()
        assert len(first) == 2
        assert named_memory(os.getpid(), *(actor.pid for actor in first)) == set()
        killed = first if all_of_them else first[:1]
        for actor in killed:
            actor.kill()
        reported: list[str] = []
        patience = Patience()
        while patience.lasts() and len(reported) < len(killed):
            reported += learner.advance(0.0, watched=False).warnings
        assert all("was killed by signal 9; another takes its place" in warning for warning in reported)
        assert psutil.wait_procs(killed, timeout=PATIENCE_S)[1] == []
        before = [int(learner.counts.of(k)[2]) for k in range(2)]
        patience = Patience()
        while patience.lasts() and any(int(learner.counts.of(k)[2]) <= before[k] for k in range(2)):
            learner.advance(0.0, watched=False)
        second = actors()
        assert len(second) == 2
    assert psutil.wait_procs(second, timeout=PATIENCE_S)[1] == []
    assert actors() == []
    assert psutil.Process().num_fds() <= handles + FORK_SERVER_FDS


def test_actor_error_is_raised_with_its_traceback(
    started: Callable[[RunSpec], HogwildLearner],
) -> None:
    learner = started(spec_of(n_actors=1))
    state = learner.state()
    state["actors"] = [{"rng": {}}]
    with pytest.raises(ChildFailedError, match=r"Traceback[\s\S]*KeyError"):
        learner.restore(state)


def test_n_actors_changes_while_training(started: Callable[[RunSpec], HogwildLearner]) -> None:
    learner = started(spec_of(n_actors=1))
    for n in (3, 2):
        learner.change(learner.config.model_copy(update={"n_actors": n}))
        before = [int(learner.counts.of(k)[2]) for k in range(n)]
        patience = Patience()
        while patience.lasts() and any(int(learner.counts.of(k)[2]) <= before[k] for k in range(n)):
            learner.advance(0.0, watched=False)
        assert len(actors()) == n


def test_actors_pause_during_evaluation(started: Callable[[RunSpec], HogwildLearner]) -> None:
    learner = started(spec_of())
    advance_until(learner, lambda made: made.updates > 0)
    learner.policy(0)
    theta, counted = learner.vectors.theta.clone(), learner.counts.total(0)
    for actor in actors():  # at rest: no processor time goes by
        used = actor.cpu_times().user
        with suppress(subprocess.TimeoutExpired, psutil.TimeoutExpired):
            actor.wait(0.3)
        assert actor.cpu_times().user - used < 0.1
    assert torch.equal(learner.vectors.theta, theta)
    assert learner.counts.total(0) == counted
    assert advance_until(learner, lambda made: made.updates > 0).updates > 0


def test_live_settings_reach_running_actors(started: Callable[[RunSpec], HogwildLearner]) -> None:
    learner = started(spec_of(n_actors=1, learning_rate_schedule="constant"))
    advance_until(learner, lambda made: made.updates > 0)
    learner.change(learner.config.model_copy(update={"learning_rate": 1e-30}))
    learner.policy(0)  # at rest: one update may have been under way
    before, updates = learner.vectors.theta.clone(), learner.counts.total(2)
    made = advance_until(learner, lambda made: learner.counts.total(2) > updates)
    assert made.metrics["optim/learning_rate"] == 1e-30
    torch.testing.assert_close(learner.vectors.theta, before, rtol=0, atol=1e-12)


def test_frames_are_sent_only_while_watched(started: Callable[[RunSpec], HogwildLearner]) -> None:
    learner = started(spec_of())
    live_frames: list[bytes] = []
    patience = Patience()
    while patience.lasts() and not live_frames:
        live_frames += learner.advance(0.0, watched=True).live_frames
    assert live_frames[0].startswith(b"\xff\xd8")  # a JPEG's first bytes
    learner.advance(0.0, watched=False)
    learner.policy(0)  # at rest: what was under way has arrived
    learner.advance(0.0, watched=False)
    assert not learner.advance(0.0, watched=False).live_frames


@pytest.mark.parametrize(
    "settings",
    [
        {"recurrent": True, "optimizer": "shared_adam"},
        pytest.param({"optimizer": "rmsprop"}, marks=pytest.mark.long),
    ],
)
def test_resume_continues_in_the_middle_of_an_episode(
    started: Callable[[RunSpec], HogwildLearner], settings: dict[str, Any], tmp_path: Path
) -> None:
    first = started(spec_of(**settings))
    advance_until(first, lambda made: min(int(first.counts.of(k)[2]) for k in range(2)) > 10)
    checkpoint.save(tmp_path / "kept.pt", {"learner": first.state()})
    kept = checkpoint.load(tmp_path / "kept.pt")["learner"]
    second = started(spec_of(**settings))
    second.restore(kept)
    again = second.state()
    for k in range(2):
        was, now = kept["actors"][k], again["actors"][k]
        assert now["play"] == was["play"]
        assert now["rng"] == was["rng"]
        assert (
            now["method"].keys() == was["method"].keys() == ({"lstm"} if "recurrent" in settings else set())
        )
        for name in was["method"]:
            assert was["method"][name].any() == bool(was["play"]["actions"])
            assert torch.equal(now["method"][name], was["method"][name])
    assert again["counts"] == kept["counts"]
    assert again["statistics"].keys() == kept["statistics"].keys()
    for name, statistic in kept["statistics"].items():
        assert statistic.any()
        assert torch.equal(again["statistics"][name], statistic)
    assert advance_until(second, lambda made: made.updates > 0).agent_steps > 0


def test_agent_step_bound_is_met_exactly(tmp_path: Path) -> None:
    # So many that each actor finishes an episode, also if one waits for a processor for a second.
    spec = spec_of(stop={"agent_steps": 10_000}, t_max=5)
    ended = Training(spec, tmp_path).run()
    assert ended.state == "finished", ended.traceback
    said = [event for frame, _ in read_frames(tmp_path / "attempts/1/events.log") for event in frame]
    [*_, saved] = [e for e in said if isinstance(e, CheckpointSavedEvent)]
    assert 10_000 <= saved.agent_steps < 10_000 + 2 * 5
    sources = {e.source for e in said if isinstance(e, PointsEvent) and e.metric == "rollout/episode_return"}
    assert sources == {"", "actor 0", "actor 1"}


def start_engine(run_dir: Path, spec: RunSpec, temporary: Path | None = None) -> subprocess.Popen[bytes]:
    (run_dir / "spec.json").write_text(spec.model_dump_json())
    return subprocess.Popen(
        [sys.executable, "-m", "workers.engine", "train", str(run_dir)],
        env=os.environ | ({"TMPDIR": str(temporary)} if temporary else {}),
    )


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_engine_ended_by_signal_leaves_nothing(tmp_path: Path, short_tmp: Path, how: signal.Signals) -> None:
    engine = start_engine(tmp_path, spec_of(checkpoint_interval_s=1), short_tmp)
    await_event(engine, tmp_path, CheckpointSavedEvent)
    parts = psutil.Process(engine.pid).children(recursive=True)
    assert len([p for p in parts if _vectors(p.pid)]) == 2
    assert named_memory(engine.pid, *(part.pid for part in parts)) == set()
    engine.send_signal(how)
    assert engine.wait(timeout=PATIENCE_S) == (0 if how == signal.SIGTERM else -signal.SIGKILL)
    assert psutil.wait_procs(parts, timeout=PATIENCE_S)[1] == []
    assert list(short_tmp.iterdir()) == []
    ended = [e for e in logged(tmp_path) if isinstance(e, EndedEvent)]
    assert [e.state for e in ended] == (["stopped"] if how == signal.SIGTERM else [])


def start_64_actors(run_dir: Path) -> tuple[float, float]:
    """Seconds until all are ready, and until each has reported, in an engine of its own."""
    began = monotonic()
    engine = start_engine(run_dir, spec_of("one_step_q", stop={"wall_time_s": 3_600}, n_actors=64))
    await_event(engine, run_dir, StartedEvent, timeout_s=ALL_REPORT_S)
    ready_s = monotonic() - began
    await_events(
        engine,
        run_dir,
        lambda events: len({e.source for e in events if isinstance(e, PointsEvent) and e.source}) == 64,
        ALL_REPORT_S,
    )
    reported_s = monotonic() - began
    engine.send_signal(signal.SIGTERM)
    assert engine.wait(timeout=PATIENCE_S) == 0
    return ready_s, reported_s


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_64_actors_all_report(tmp_path: Path) -> None:
    start_64_actors(tmp_path)


@pytest.mark.benchmark
def test_64_actors_start_within_the_limit(tmp_path: Path) -> None:
    ready_s, reported_s = start_64_actors(tmp_path)
    print(f"\n64 actors ready after {ready_s:.1f} s, all have reported after {reported_s:.1f} s")  # noqa: T201
    assert ready_s < START_S


@pytest.mark.long
def test_killed_actor_is_logged_and_the_run_continues(tmp_path: Path) -> None:
    engine = start_engine(tmp_path, spec_of())
    await_event(engine, tmp_path, StartedEvent)
    parts = psutil.Process(engine.pid).children(recursive=True)
    next(p for p in parts if _vectors(p.pid)).kill()
    await_event(engine, tmp_path, LogEvent, "another takes its place")
    [warning] = [e for e in logged(tmp_path) if isinstance(e, LogEvent) and e.level == "warning"]
    assert warning.message.startswith("actor ")
    engine.send_signal(signal.SIGTERM)
    assert engine.wait(timeout=PATIENCE_S) == 0
    assert not [e for e in logged(tmp_path) if isinstance(e, SettingsChangedEvent)]
