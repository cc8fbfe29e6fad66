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

from backend.specs.events import CheckpointSaved, Ended, Log, Points, SettingsChanged, Started
from backend.specs.run import RunSpec, parse_run_spec
from workers.engine import checkpoint
from workers.engine.algorithms import ENGINES
from workers.engine.algorithms.hogwild import Hogwild
from workers.engine.event_log import read_frames
from workers.engine.helpers import HelperFailedError
from workers.engine.learner import Advance
from workers.engine.training import Training


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
"""64 actors on two cores, where other work may run beside them."""
FORK_SERVER_FDS = 4
"""The fork server and Python's watch over shared memory, which stay for the next learner."""


@pytest.fixture
def started() -> Iterator[Callable[[RunSpec], Hogwild]]:
    learners: list[Hogwild] = []

    def start(spec: RunSpec) -> Hogwild:
        learner = ENGINES[spec.algorithm].learner(spec)
        assert isinstance(learner, Hogwild)
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
        return {line.split()[4] for line in maps if "callboard-vectors" in line}
    return set()


def advance_until(learner: Hogwild, enough: Callable[[Advance], bool]) -> Advance:
    while not enough(made := learner.advance(0.0, watched=False)):
        pass
    return made


def test_theta_and_g_are_shared_by_the_actors(started: Callable[[RunSpec], Hogwild]) -> None:
    learner = started(spec_of())
    theta = learner._vectors.theta
    before = theta.clone()
    assert not learner._vectors.statistics(learner.config)["g"].any()
    while min(learner._counts.of(k)[2] for k in range(2)) == 0:  # until both have made an update
        learner.advance(0.0, watched=False)
    assert not torch.equal(theta, before)
    assert learner._vectors.statistics(learner.config)["g"].any()
    mine = _vectors(os.getpid())
    assert [_vectors(actor.pid) & mine == _vectors(actor.pid) for actor in actors()] == [True, True]


@pytest.mark.parametrize("all_of_them", [pytest.param(False, marks=pytest.mark.long), True])
def test_a_killed_actor_is_replaced_and_nothing_is_left(all_of_them: bool) -> None:
    named, handles = _shared_names(), psutil.Process().num_fds()
    learner = ENGINES["a3c"].learner(spec_of())
    assert isinstance(learner, Hogwild)
    with closing(learner):
        advance_until(learner, lambda made: made.updates > 0)
        first = actors()
        assert len(first) == 2
        killed = first if all_of_them else first[:1]
        for actor in killed:
            actor.kill()
        told: list[str] = []
        while len(told) < len(killed):
            told += learner.advance(0.0, watched=False).warnings
        assert all("was killed by signal 9; another takes its place" in warning for warning in told)
        assert psutil.wait_procs(killed, timeout=10)[1] == []
        before = [int(learner._counts.of(k)[2]) for k in range(2)]
        while any(int(learner._counts.of(k)[2]) <= before[k] for k in range(2)):
            learner.advance(0.0, watched=False)
        second = actors()
        assert len(second) == 2
    assert psutil.wait_procs(second, timeout=10)[1] == []
    assert actors() == []
    assert _shared_names() <= named
    assert psutil.Process().num_fds() <= handles + FORK_SERVER_FDS


def test_an_error_in_an_actor_is_told_with_its_traceback(started: Callable[[RunSpec], Hogwild]) -> None:
    learner = started(spec_of(n_actors=1))
    state = learner.state()
    state["actors"] = [{"rng": {}}]
    with pytest.raises(HelperFailedError, match=r"Traceback[\s\S]*KeyError"):
        learner.restore(state)


def test_an_actor_that_ends_by_itself_is_no_accident(started: Callable[[RunSpec], Hogwild]) -> None:
    learner = started(spec_of(n_actors=1))
    process = learner._actors[0].helper.process
    learner._actors[0].channel.close()
    process.join(10)
    assert process.exitcode == 0
    with pytest.raises(HelperFailedError, match="exit status 0"):
        learner._replace(0)


def test_the_number_of_actors_changes_while_they_learn(started: Callable[[RunSpec], Hogwild]) -> None:
    learner = started(spec_of(n_actors=1))
    for n in (3, 2):
        learner.change(learner.config.model_copy(update={"n_actors": n}))
        before = [int(learner._counts.of(k)[2]) for k in range(n)]
        while any(int(learner._counts.of(k)[2]) <= before[k] for k in range(n)):
            learner.advance(0.0, watched=False)
        assert len(actors()) == n


def test_actors_rest_while_the_policy_is_scored(started: Callable[[RunSpec], Hogwild]) -> None:
    learner = started(spec_of())
    advance_until(learner, lambda made: made.updates > 0)
    learner.policy(0)
    theta, counted = learner._vectors.theta.clone(), learner._counts.total(0)
    for actor in actors():  # at rest: no processor time goes by
        used = actor.cpu_times().user
        with suppress(subprocess.TimeoutExpired, psutil.TimeoutExpired):
            actor.wait(0.3)
        assert actor.cpu_times().user - used < 0.1
    assert torch.equal(learner._vectors.theta, theta)
    assert learner._counts.total(0) == counted
    assert advance_until(learner, lambda made: made.updates > 0).updates > 0


def test_settings_are_in_force_while_the_actors_run(started: Callable[[RunSpec], Hogwild]) -> None:
    learner = started(spec_of(n_actors=1, learning_rate_schedule="constant"))
    advance_until(learner, lambda made: made.updates > 0)
    learner.change(learner.config.model_copy(update={"learning_rate": 1e-30}))
    advance_until(learner, lambda made: made.updates > 0)  # one update may have been under way
    before = learner._vectors.theta.clone()
    made = advance_until(learner, lambda made: made.updates > 0)
    assert made.internals["optim/learning_rate"] == 1e-30
    torch.testing.assert_close(learner._vectors.theta, before, rtol=0, atol=1e-12)


def test_pictures_are_drawn_while_someone_watches(started: Callable[[RunSpec], Hogwild]) -> None:
    learner = started(spec_of())
    pictures: list[bytes] = []
    while not pictures:
        pictures += learner.advance(0.0, watched=True).pictures
    assert pictures[0].startswith(b"\xff\xd8")  # a JPEG's first bytes
    learner.advance(0.0, watched=False)
    learner.policy(0)  # at rest: what was under way has arrived
    learner.advance(0.0, watched=False)
    assert not learner.advance(0.0, watched=False).pictures


@pytest.mark.parametrize(
    "settings",
    [
        {"recurrent": True, "optimizer": "shared_adam"},
        pytest.param({"optimizer": "rmsprop"}, marks=pytest.mark.long),
    ],
)
def test_a_resume_goes_on_in_the_middle_of_an_episode(
    started: Callable[[RunSpec], Hogwild], settings: dict[str, Any], tmp_path: Path
) -> None:
    first = started(spec_of(**settings))
    advance_until(first, lambda made: made.updates > 20)
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


def test_a_bound_is_met_and_not_passed(tmp_path: Path) -> None:
    spec = spec_of(stop={"agent_steps": 2_000}, t_max=5)
    ended = Training(spec, tmp_path).run()
    assert ended.state == "finished", ended.traceback
    said = [event for frame, _ in read_frames(tmp_path / "attempts/1/events.log") for event in frame]
    [*_, saved] = [e for e in said if isinstance(e, CheckpointSaved)]
    assert 2_000 <= saved.agent_steps < 2_000 + 2 * 5
    sources = {e.source for e in said if isinstance(e, Points) and e.metric == "rollout/episode_return"}
    assert sources == {"", "actor 0", "actor 1"}


def events(run_dir: Path) -> list[Any]:
    log = run_dir / "attempts" / "1" / "events.log"
    return [event for frame, _ in read_frames(log) for event in frame]


def start_engine(run_dir: Path, spec: RunSpec) -> subprocess.Popen[bytes]:
    (run_dir / "spec.json").write_text(spec.model_dump_json())
    (run_dir / "temporary").mkdir()
    return subprocess.Popen(
        [sys.executable, "-m", "workers.engine", "train", str(run_dir)],
        env=os.environ | {"TMPDIR": str(run_dir / "temporary")},
    )


def wait_for(engine: subprocess.Popen[bytes], run_dir: Path, kind: type[Any], like: str = "") -> None:
    while not any(isinstance(e, kind) and like in e.model_dump_json() for e in events(run_dir)):
        with suppress(subprocess.TimeoutExpired):
            engine.wait(0.1)
        assert engine.returncode is None


def _shared_names() -> set[str]:
    """Named shared memory, but for that of other tests' databases."""
    return {name for name in os.listdir("/dev/shm") if not name.startswith("PostgreSQL")}


@pytest.mark.parametrize("how", [pytest.param(signal.SIGTERM, marks=pytest.mark.long), signal.SIGKILL])
def test_nothing_is_left_of_an_engine_that_ends_by_signal(tmp_path: Path, how: signal.Signals) -> None:
    named = _shared_names()
    engine = start_engine(tmp_path, spec_of(checkpoint_interval_s=1))
    wait_for(engine, tmp_path, CheckpointSaved)
    parts = psutil.Process(engine.pid).children(recursive=True)
    assert len([p for p in parts if _vectors(p.pid)]) == 2
    engine.send_signal(how)
    assert engine.wait(timeout=60) == (0 if how == signal.SIGTERM else -signal.SIGKILL)
    assert psutil.wait_procs(parts, timeout=30)[1] == []
    assert _shared_names() <= named
    assert list((tmp_path / "temporary").iterdir()) == []
    ended = [e for e in events(tmp_path) if isinstance(e, Ended)]
    assert [e.state for e in ended] == (["stopped"] if how == signal.SIGTERM else [])


@pytest.mark.long
def test_64_actors_are_at_work_within_seconds(tmp_path: Path) -> None:
    """In an engine of its own, whose fork server has loaded what these actors need."""
    began = monotonic()
    engine = start_engine(tmp_path, spec_of("one_step_q", n_actors=64))
    wait_for(engine, tmp_path, Started)
    started_s = monotonic() - began
    while len({e.source for e in events(tmp_path) if isinstance(e, Points) and e.source}) < 64:
        with suppress(subprocess.TimeoutExpired):
            engine.wait(0.1)
        assert engine.returncode is None
    told_s = monotonic() - began
    print(f"\n64 actors ready after {started_s:.1f} s, each heard of after {told_s:.1f} s")  # noqa: T201
    engine.send_signal(signal.SIGTERM)
    assert engine.wait(timeout=60) == 0
    assert started_s < START_S


def test_the_log_tells_of_a_killed_actor_and_the_run_goes_on(tmp_path: Path) -> None:
    engine = start_engine(tmp_path, spec_of())
    wait_for(engine, tmp_path, Started)
    parts = psutil.Process(engine.pid).children(recursive=True)
    next(p for p in parts if _vectors(p.pid)).kill()
    wait_for(engine, tmp_path, Log, "another takes its place")
    [warning] = [e for e in events(tmp_path) if isinstance(e, Log) and e.level == "warning"]
    assert warning.message.startswith("actor ")
    engine.send_signal(signal.SIGTERM)
    assert engine.wait(timeout=60) == 0
    assert not [e for e in events(tmp_path) if isinstance(e, SettingsChanged)]
