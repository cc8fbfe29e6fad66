"""A start that is stopped, and what is reported before it."""

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from backend.specs.events import EndedEvent, LogEvent, ProvenanceEvent, StartingEvent
from backend.specs.run import RunSpec, parse_run_spec
from tests.support.engine_process import logged
from tests.support.waiting import PATIENCE_S
from tests.workers.engine.training.training_runs import cartpole, only, train
from workers.engine.methods.base import Learner
from workers.engine.methods.registry import METHODS
from workers.engine.processes.child import Channel, Child
from workers.engine.processes.phases import enter_phase, listening
from workers.engine.training import checkpoint
from workers.engine.training.control import Control
from workers.engine.training.loop import Training


@pytest.fixture
def control() -> Iterator[Control]:
    """A control that handles signals, until the test ends."""
    before = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGINT)}
    control = Control()
    control.handle_signals()
    yield control
    for name, handler in before.items():
        signal.signal(name, handler)


def _start_by(monkeypatch: pytest.MonkeyPatch, learner: Any) -> None:
    monkeypatch.setitem(METHODS, "paac", METHODS["paac"]._replace(learner=learner))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_during_a_start_ends_it_immediately(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, control: Control, number: signal.Signals
) -> None:
    def starting(spec: RunSpec, *, restored: bool = False) -> NoReturn:
        signal.raise_signal(number)
        raise AssertionError("the start went on")

    _start_by(monkeypatch, starting)
    ended = Training(cartpole({"agent_steps": 100}), tmp_path, control=control).run()
    assert (ended.state, ended.reason) == ("stopped", f"stopped by {number.name} while it was starting")
    assert logged(tmp_path, 1)[-1] == ended
    assert not (tmp_path / "checkpoints").exists()


def test_signal_just_before_a_start_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, control: Control
) -> None:
    """As one that arrives while the engine reads its spec and opens its log."""

    def starting(spec: RunSpec, *, restored: bool = False) -> NoReturn:
        raise AssertionError("the start went on")

    _start_by(monkeypatch, starting)
    training = Training(cartpole({"agent_steps": 100}), tmp_path, control=control)
    signal.raise_signal(signal.SIGTERM)
    ended = training.run()
    assert (ended.state, ended.reason) == ("stopped", "stopped by SIGTERM while it was starting")


def _wait_for_the_engine(channel: Channel) -> None:
    channel.receive()


@pytest.mark.service
def test_signal_during_a_start_kills_children_that_it_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, control: Control
) -> None:
    children: list[Child] = []

    def starting(spec: RunSpec, *, restored: bool = False) -> NoReturn:
        children.append(Child(_wait_for_the_engine, name="a child"))
        signal.raise_signal(signal.SIGTERM)
        raise AssertionError("the start went on")

    _start_by(monkeypatch, starting)
    Training(cartpole({"agent_steps": 100}), tmp_path, control=control).run()
    process = children[0].process
    process.join(PATIENCE_S)
    assert process.exitcode == -signal.SIGKILL


def test_signal_after_the_start_saves_a_checkpoint(tmp_path: Path, control: Control) -> None:
    def on_event(event: Any) -> None:
        if event.type == "report":
            signal.raise_signal(signal.SIGTERM)

    spec = cartpole({"wall_time_s": 60}, n_w=1)
    ended = Training(spec, tmp_path, control=control, on_event=on_event).run()
    assert (ended.state, ended.reason) == ("stopped", "stopped by SIGTERM")
    assert len(list((tmp_path / "checkpoints").iterdir())) == 1


def test_phases_of_a_start_are_logged_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create = METHODS["paac"].learner

    def starting(spec: RunSpec, *, restored: bool = False) -> Learner:
        enter_phase("starting 1 of 2 processes")
        return create(spec, restored=restored)

    _start_by(monkeypatch, starting)
    train(cartpole({"agent_steps": 40}, n_w=1), tmp_path)
    newest = checkpoint.newest(tmp_path / "checkpoints")
    resumed = train(cartpole({"agent_steps": 80}, n_w=1), tmp_path, 2, newest)
    assert [event.phase for event in only(StartingEvent, resumed)] == [
        "building environments and network",
        "starting 1 of 2 processes",
        "compiling kernels",
        "starting 1 of 1 rollout workers",
        f"restoring {newest}",
    ]
    enter_phase("after the start")
    assert logged(tmp_path, 2) == resumed


def started(algorithm: str, phases: Callable[[str], None], **config: Any) -> None:
    """Start a learner, call `phases` with each phase, and stop it."""
    spec = parse_run_spec(
        {"algorithm": algorithm, "environment": "CartPole-v1", "stop": {"agent_steps": 10}, "config": config}
    )
    with listening(phases):
        learner = METHODS[algorithm].learner(spec)
    learner.close()


KERNELS = "workers.engine.nn.kernels"


@pytest.mark.parametrize("algorithm", ["paac", pytest.param("ga3c", marks=pytest.mark.service), "dqn"])
def test_kernels_are_compiled_in_a_phase_of_the_start(
    monkeypatch: pytest.MonkeyPatch, algorithm: str
) -> None:
    """An engine has not imported them before; without the phase, the first update would."""
    monkeypatch.delitem(sys.modules, KERNELS, raising=False)
    monkeypatch.delattr(KERNELS, raising=False)
    loaded: dict[str, bool] = {}

    def phase_begins(phase: str) -> None:
        loaded[phase] = KERNELS in sys.modules

    sizes = {"paac": {"n_w": 1}, "ga3c": {"n_actors": 1}, "dqn": {"replay_capacity": 1_000}}
    started(algorithm, phase_begins, **sizes[algorithm])
    assert loaded["compiling kernels"] is False
    assert KERNELS in sys.modules


@pytest.mark.service
@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        ("n_step_q", ["importing packages and compiling kernels", "starting 2 of 2 processes"]),
        ("ga3c", ["compiling kernels", "starting 2 agents", "starting 2 of 2 processes"]),
    ],
)
def test_start_of_actors_logs_the_fork_server_and_each_process(algorithm: str, expected: list[str]) -> None:
    phases: list[str] = []
    started(algorithm, phases.append, n_actors=2)
    assert phases == expected


def test_run_with_too_many_processes_is_warned_about_before_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(spec: RunSpec, *, restored: bool = False) -> NoReturn:
        raise RuntimeError("no start in this test")

    monkeypatch.setitem(METHODS, "gorila_dqn", METHODS["gorila_dqn"]._replace(learner=fails))
    config = {"n_actors": 1_024, "n_learners": 1_024, "n_shards": 1_024, "parts_per_process": 1}
    request = {"algorithm": "gorila_dqn", "environment": "CartPole-v1", "config": config}
    Training(parse_run_spec(request | {"stop": {"agent_steps": 100}}), tmp_path).run()
    first, warning, _, ended = logged(tmp_path, 1)
    assert isinstance(first, ProvenanceEvent)
    assert isinstance(warning, LogEvent)
    assert (warning.level, warning.message.partition(" processes")[0]) == ("warning", "2048")
    assert only(EndedEvent, [ended])
