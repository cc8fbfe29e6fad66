"""What every registered algorithm must do; a new line in the registries is covered without a change here.

On one small environment each algorithm trains, is evaluated, takes new values of all its live settings, stops
without leaving anything behind, continues from its checkpoint, and fails with a clear error on NaN.
"""

import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from backend.specs.algorithms import ALGORITHMS
from backend.specs.algorithms.ga3c import Ga3cConfig
from backend.specs.algorithms.synchronous import SynchronousConfig
from backend.specs.commands import ChangeSettings
from backend.specs.environments.custom import FILE_VARIABLE, read_custom_environments
from backend.specs.events import (
    AnyEvent,
    EndedEvent,
    EvaluationEvent,
    HistogramEvent,
    PointsEvent,
    ReportEvent,
    SettingsChangedEvent,
    StartedEvent,
)
from backend.specs.fields import marked_fields
from backend.specs.run import RunSpec, parse_run_spec
from tests.support import custom_environment
from tests.support.algorithms import LEARNING
from tests.support.engine_process import logged
from tests.support.waiting import until
from tests.workers.engine.contract_runs import SMALL, leftovers, small
from tests.workers.engine.training.training_runs import columns, only
from workers.engine.envs import make_env
from workers.engine.methods.base import Learner
from workers.engine.methods.ga3c.memory import EPISODES_BEGUN
from workers.engine.methods.registry import METHODS
from workers.engine.training import checkpoint
from workers.engine.training.control import Control
from workers.engine.training.evaluation import load_policy
from workers.engine.training.loop import Training


class Commands(Control):
    """Commands from within this process."""

    def __init__(self) -> None:
        super().__init__()
        self.changes: list[ChangeSettings] = []

    def take_settings(self) -> list[ChangeSettings]:
        taken, self.changes = self.changes, []
        return taken


class ContractRun:
    """An algorithm's attempts in an environment that can be poisoned with large numbers."""

    def __init__(self, algorithm: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.poison_file = folder / "poison"
        file = custom_environment.write(folder, custom_environment.POISONED_BY.format(path=self.poison_file))
        monkeypatch.setenv(FILE_VARIABLE, str(file))
        monkeypatch.setattr("workers.engine.training.loop.REPORT_INTERVAL_S", 0.1)
        entry = read_custom_environments(file)["Custom/Poisonable-v0"]
        self.spec = small(
            algorithm,
            "Custom/Poisonable-v0",
            custom=entry.describe().model_dump(mode="json"),
            config={"evaluation_interval_agent_steps": 500},
        )
        self.learners: list[Learner] = []
        method = METHODS[algorithm]

        def create(spec: RunSpec, *, restored: bool = False) -> Learner:
            self.learners.append(method.learner(spec, restored=restored))
            return self.learners[-1]

        monkeypatch.setitem(METHODS, algorithm, method._replace(learner=create))

    def change(self, values: dict[str, Any]) -> None:
        """Change settings of the next attempt."""
        data = self.spec.model_dump(mode="json")
        self.spec = parse_run_spec(data | {"config": data["config"] | values})

    def train(self, on_event: Callable[[AnyEvent], None], resume: str | None = None) -> EndedEvent:
        """Train, as the second attempt where it resumes."""
        self.commands = Commands()
        ended = Training(
            self.spec,
            self.folder,
            attempt=1 if resume is None else 2,
            resume=resume,
            control=self.commands,
            on_event=on_event,
        ).run()
        self.learners.clear()
        return ended

    def checkpoints(self) -> dict[str, dict[str, Any]]:
        return {path.name: checkpoint.load(path) for path in (self.folder / "checkpoints").iterdir()}


def values_in(state: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every tensor, array, number and text in a learner's state, with its path."""
    if isinstance(state, dict):
        for key, value in state.items():
            yield from values_in(value, f"{path}/{key}")
    elif isinstance(state, list | tuple):
        for k, value in enumerate(state):
            yield from values_in(value, f"{path}/{k}")
    else:
        yield path, state


def numbers_in(state: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Every tensor of floating-point numbers in a learner's state, with its path."""
    for path, value in values_in(state):
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            yield path, value


def counts_episodes(algorithm: str, path: str) -> bool:
    """Whether a value of a state counts episodes: methods with new episodes after a resume."""
    config = ALGORITHMS[algorithm].config
    if issubclass(config, Ga3cConfig):
        return re.fullmatch(rf"/counts/\d+/{EPISODES_BEGUN}", path) is not None
    is_synchronous = issubclass(config, SynchronousConfig)
    return is_synchronous and re.fullmatch(r"/shares/\d+/episodes_begun/\d+", path) is not None


def observations(spec: RunSpec) -> NDArray[Any]:
    """Four random observations of the run's shape."""
    env = make_env(spec.environment, spec.environment_config)
    env.close()
    return np.random.default_rng(0).normal(size=(4, *env.observation_shape)).astype(np.float32)


def other_values(spec: RunSpec) -> dict[str, Any]:
    """Another value for each live setting of an algorithm."""
    values = {name: getattr(spec.config, name) for name in sorted(marked_fields(type(spec.config), "live"))}
    return {
        name: value + 1 if isinstance(value, int) else 1.5 * value
        for name, value in values.items()
        if not name.startswith("evaluation_")
    }


@dataclass
class Attempts:
    """What an algorithm's training and its resumption left."""

    changes: dict[str, Any]
    """Other values of the live settings, which the first attempt was given."""
    stopped: EndedEvent
    events: list[AnyEvent]
    """Of the first attempt."""
    evaluated: list[EvaluationEvent]
    state: dict[str, Any]
    """The learner's state in the checkpoint of the first attempt's end, by path."""
    stored: dict[str, Any]
    """The same as it is stored."""
    failed: EndedEvent
    """How the second attempt ended, whose rewards became NaN."""
    restored: dict[str, Any] = field(default_factory=dict)
    """The learner's state when the second attempt started, by path."""
    shapes: dict[str, torch.Size] = field(default_factory=dict)
    """The shape of each parameter."""
    acted: list[tuple[Any, ...]] = field(default_factory=list)
    """What the policy of the resumed learner and that of the checkpoint do."""
    checkpoints: dict[str, dict[str, Any]] = field(default_factory=dict)


def train_and_resume(algorithm: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Attempts:
    """Train, change the live settings, stop, resume with the changed ones, and make the rewards NaN."""
    before = leftovers()
    run = ContractRun(algorithm, folder, monkeypatch)
    changes = other_values(run.spec)
    asked_at: int | None = None
    """Updates when other settings were requested."""
    changed_at: int | None = None
    """Updates at the first report after the change."""
    is_confirmed = False
    evaluated: list[EvaluationEvent] = []

    def change_then_stop(event: AnyEvent) -> None:
        nonlocal asked_at, changed_at, is_confirmed
        match event:
            case EvaluationEvent():
                evaluated.append(event)
            case SettingsChangedEvent():
                is_confirmed = True
            case ReportEvent(updates=updates) if updates and asked_at is None:
                asked_at = updates
                run.commands.changes.append(ChangeSettings(version=1, changes=changes))
            case ReportEvent(updates=updates) if is_confirmed and changed_at is None:
                changed_at = updates
            case ReportEvent(updates=updates) if changed_at is not None:
                if updates > changed_at and evaluated:
                    run.commands.stop("enough")

    stopped = run.train(change_then_stop)
    until(lambda: leftovers() <= before, detail=lambda: leftovers() - before)
    events = logged(folder)
    last_updates = only(ReportEvent, events)[-1].updates
    newest = checkpoint.newest(folder / "checkpoints")
    assert newest is not None
    file = folder / "checkpoints" / newest
    state = dict(values_in(checkpoint.load(file)["learner"]))
    stored = torch.load(file, weights_only=True)["learner"]
    restored: dict[str, Any] = {}
    shapes: dict[str, torch.Size] = {}
    acted: list[tuple[Any, ...]] = []

    def poison_after_resume(event: AnyEvent) -> None:
        match event:
            case StartedEvent():
                restored.update(copy.deepcopy(dict(values_in(run.learners[-1].state()))))
                parameters = run.learners[-1].network.named_parameters()
                shapes.update({name: parameter.shape for name, parameter in parameters})
                observation_N = observations(run.spec)
                loaded = load_policy(run.spec, file, 0)
                policies = (run.learners[-1].policy(0), loaded)
                acted.extend(policy.act(observation_N, np.arange(4)) for policy in policies)
            case ReportEvent(updates=updates) if updates > last_updates:
                run.poison_file.touch()

    run.change(changes | {"evaluation_episodes": 0})
    failed = run.train(poison_after_resume, resume=newest)
    until(lambda: leftovers() <= before, detail=lambda: leftovers() - before)
    return Attempts(
        changes=changes,
        stopped=stopped,
        events=events,
        evaluated=evaluated,
        state=state,
        stored=stored,
        failed=failed,
        restored=restored,
        shapes=shapes,
        acted=acted,
        checkpoints=run.checkpoints(),
    )


@pytest.fixture(scope="module")
def attempts_by_algorithm() -> dict[str, Attempts]:
    """The attempts so far: each algorithm trains once for all tests."""
    return {}


IN_THE_GATE = ("paac", "ga3c", "a3c", "one_step_q", "dqn")


@pytest.fixture(
    params=[name if name in IN_THE_GATE else pytest.param(name, marks=pytest.mark.long) for name in LEARNING]
)
def algorithm(request: pytest.FixtureRequest) -> str:
    """Id of each algorithm."""
    return str(request.param)


@pytest.fixture
def attempts(
    algorithm: str,
    attempts_by_algorithm: dict[str, Attempts],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    fork_server: None,
) -> Attempts:
    """The attempts of an algorithm."""
    if algorithm not in attempts_by_algorithm:
        folder = tmp_path_factory.mktemp(algorithm)
        attempts_by_algorithm[algorithm] = train_and_resume(algorithm, folder, monkeypatch)
    return attempts_by_algorithm[algorithm]


@pytest.mark.service
def test_algorithm_trains_is_evaluated_changes_settings_and_stops(attempts: Attempts) -> None:
    assert (attempts.stopped.state, attempts.stopped.reason) == ("stopped", "enough"), (
        attempts.stopped.traceback
    )
    events, changes = attempts.events, attempts.changes
    [changed] = only(SettingsChangedEvent, events)
    assert changed.refused is None
    assert columns(events, "optim/learning_rate")[-1][1] == pytest.approx(changes["learning_rate"])
    assert len(attempts.evaluated[0].returns) == SMALL["evaluation_episodes"]
    names = {points.metric for points in only(PointsEvent, events)}
    assert {name for name in names if name.startswith("env/")} == {"env/two", "env/last"}
    assert {value for _, value in columns(events, "env/two")} == {2.0}
    assert {value for _, value in columns(events, "env/last")} == {20.0}
    histograms = {histogram.metric for histogram in only(HistogramEvent, events)}
    assert histograms >= {"policy/actions", "policy/values"}


@pytest.mark.service
def test_resumed_algorithm_has_the_state_and_the_policy_of_its_checkpoint(
    algorithm: str, attempts: Attempts
) -> None:
    assert attempts.state.keys() == attempts.restored.keys()
    for path, value in attempts.state.items():
        if counts_episodes(algorithm, path):
            assert attempts.restored[path] >= value
        else:
            np.testing.assert_array_equal(attempts.restored[path], value, err_msg=path, strict=True)
    for of_learner, of_checkpoint in zip(*attempts.acted, strict=True):
        np.testing.assert_allclose(of_learner, of_checkpoint, rtol=1e-5, atol=1e-6)


@pytest.mark.service
def test_checkpoint_of_algorithm_names_each_parameter_and_has_them_once(attempts: Attempts) -> None:
    theta = attempts.stored["theta"]
    assert {name: tensor.shape for name, tensor in theta.items()} == attempts.shapes
    n_parameters = sum(shape.numel() for shape in attempts.shapes.values())
    assert all(tensor.shape != (n_parameters,) for _, tensor in numbers_in(attempts.stored))


@pytest.mark.service
def test_algorithm_fails_on_overflow_and_its_checkpoints_stay_finite(attempts: Attempts) -> None:
    assert attempts.failed.state == "failed"
    reason = attempts.failed.reason
    assert reason.startswith("DivergedError: training diverged: "), attempts.failed.traceback
    assert "NaN" in reason
    for name, state in attempts.checkpoints.items():
        for path, tensor in numbers_in(state):
            assert tensor.isfinite().all(), (name, path)


def trained(spec: RunSpec, folder: Path, agent_steps: int, *, attempt: int = 1) -> tuple[Any, Any]:
    """Returns of episodes and theta after training so far, from the newest checkpoint in the folder."""
    bounded = parse_run_spec(spec.model_dump(mode="json") | {"stop": {"agent_steps": agent_steps}})
    resume = checkpoint.newest(folder / "checkpoints") if attempt > 1 else None
    ended = Training(bounded, folder, attempt=attempt, resume=resume).run()
    assert ended.state == "finished", ended.traceback
    newest = checkpoint.newest(folder / "checkpoints")
    assert newest is not None
    theta = checkpoint.load(folder / "checkpoints" / newest)["learner"]["theta"]
    # Points of each source are in the order of steps; how sources alternate depends on the clock.
    return sorted(columns(logged(folder, attempt), "rollout/episode_return")), theta


@pytest.mark.parametrize(
    "algorithm",
    [
        name if name == "paac" else pytest.param(name, marks=pytest.mark.long)
        for name, algorithm in ALGORITHMS.items()
        if algorithm.reproducibility != "none"
    ],
)
def test_reproducibility_is_as_declared(algorithm: str, tmp_path: Path) -> None:
    spec = small(algorithm, "CartPole-v1", config={"evaluation_episodes": 0})
    first, theta = trained(spec, tmp_path / "first", 1_000)
    again, theta_again = trained(spec, tmp_path / "again", 1_000)
    assert first == again
    assert torch.equal(theta, theta_again)
    resumed, theta = trained(spec, tmp_path / "first", 2_000, attempt=2)
    resumed_again, theta_again = trained(spec, tmp_path / "again", 2_000, attempt=2)
    assert resumed == resumed_again
    assert torch.equal(theta, theta_again)
    if ALGORITHMS[algorithm].reproducibility == "bitwise":
        whole, theta_whole = trained(spec, tmp_path / "whole", 2_000)
        assert first + resumed == whole
        assert torch.equal(theta, theta_whole)
