"""The image of random play, and that every method keeps it bit for bit wherever theta goes."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS
from backend.specs.events import (
    AnyEvent,
    EpisodeEvent,
    LogEvent,
    ReportEvent,
    StartedEvent,
    StartingEvent,
)
from backend.specs.run import RunSpec
from callboard_environments.agents import Agent
from tests.support.algorithms import LEARNING
from tests.support.engine_process import logged
from tests.workers.engine.contract_runs import small
from tests.workers.engine.training.training_runs import columns, only
from workers.engine.envs import Box, make_env
from workers.engine.methods import random_play
from workers.engine.methods.random_play import play_randomly, random_actions
from workers.engine.methods.registry import METHODS
from workers.engine.nn.optimizers import FlatParameters
from workers.engine.nn.seeds import RANDOM_PLAY_STREAM, episode_seed
from workers.engine.training import checkpoint
from workers.engine.training.evaluation import load_policy
from workers.engine.training.loop import Training

DECISIONS = 200
FAMILIES = {
    environment.family: environment
    for environment in reversed(ENVIRONMENTS.values())
    if environment.observation == "pixels" and (environment.family != "envpool" or find_spec("envpool"))
}
"""Family with pixels that is installed -> one of its environments, the first."""


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_play, "RANDOM_DECISIONS", DECISIONS)


def catch(algorithm: str = "paac", *, agent_steps: int = 400, seed: int = 0, **config: Any) -> RunSpec:
    few: dict[str, Any] = {
        "centre": True,
        "evaluation_episodes": 1,
        "checkpoint_interval_s": 1_000.0,
        "learning_starts_agent_steps": 50,
        "n_actors": 1,
    }
    fields = ALGORITHMS[algorithm].config.model_fields
    if algorithm == "gorila_dqn":
        few |= {"n_learners": 1}
    config = {name: value for name, value in few.items() if name in fields} | config
    return small(algorithm, "Catch-v0", config=config, seed=seed, stop={"agent_steps": agent_steps})


def image(spec: RunSpec) -> tuple[NDArray[np.float64], float]:
    return play_randomly(spec)[0].mean_and_deviation()


def slow_image(spec: RunSpec, environments: int) -> tuple[NDArray[np.float64], float, int]:
    """Mean image, deviation and frames, one environment and one state after the other, in float64."""
    rng = np.random.default_rng(np.random.SeedSequence((spec.seed, RANDOM_PLAY_STREAM)))
    envs = [make_env(spec.environment, spec.environment_config) for _ in range(environments)]
    begun = [0] * environments
    states: list[NDArray[np.uint8]] = [np.empty(env.observation_shape, np.uint8) for env in envs]
    seen, frames = [], 0
    for i, env in enumerate(envs):
        env.reset(episode_seed(spec.seed, RANDOM_PLAY_STREAM + i, 0), states[i])
    for _ in range(DECISIONS // environments):
        space = envs[0].action_space
        assert not isinstance(space, Box)
        for i, action in enumerate(rng.integers(space.n, size=environments)):
            seen.append(states[i].copy())
            step = envs[i].step(int(action), states[i])
            frames += step.frames
            if step.episode_over:
                begun[i] += 1
                envs[i].reset(episode_seed(spec.seed, RANDOM_PLAY_STREAM + i, begun[i]), states[i])
    mean = np.zeros(states[0].shape)
    for state in seen:
        mean += state / len(seen)
    squares = sum(float(((state - mean) ** 2).sum()) for state in seen)
    return mean, float(np.sqrt(squares / len(seen) / mean.size)), frames


@pytest.mark.parametrize("environment", ["Catch-v0", pytest.param("ALE/Pong-v5", marks=pytest.mark.long)])
def test_image_is_the_mean_of_the_states_of_random_decisions(environment: str) -> None:
    spec = small("paac", environment, config={"centre": True}, seed=3)
    pixels, frames = play_randomly(spec)
    mean, deviation = pixels.mean_and_deviation()
    slow_mean, slow_deviation, slow_frames = slow_image(spec, 8)
    np.testing.assert_allclose(mean, slow_mean, rtol=1e-9, atol=1e-9)
    assert deviation == pytest.approx(slow_deviation, rel=1e-9)
    assert frames == slow_frames
    assert 1 < deviation < 100


@pytest.mark.service
def test_image_follows_from_the_seed_and_not_from_the_processes() -> None:
    mean, deviation = image(catch(n_e=4, n_w=1))
    for same in (catch(n_e=4, n_w=1), catch(n_e=4, n_w=2), catch("dqn")):
        again, its_deviation = image(same)
        assert np.array_equal(mean, again)
        assert its_deviation == deviation
    other, _ = image(catch(seed=1))
    assert not np.array_equal(mean, other)


def test_random_actions_of_a_box_are_within_its_bounds() -> None:
    actions = random_actions(Box((-1.0, 0.0), (1.0, 0.5)), 100, np.random.default_rng(0))
    assert (actions.shape, actions.dtype) == ((100, 2), np.dtype("float32"))
    assert -1 <= actions[:, 0].min() < -0.8 < 0.8 < actions[:, 0].max() <= 1
    assert 0 <= actions[:, 1].min() < 0.1 < 0.4 < actions[:, 1].max() <= 0.5


@pytest.mark.long
@pytest.mark.parametrize(
    "environment",
    [environment.id for environment in FAMILIES.values()],
)
def test_every_family_with_pixels_is_played_randomly(environment: str) -> None:
    algorithm = "a3c" if ENVIRONMENTS[environment].actions == "continuous" else "paac"
    config = {"centre": True, "network": "nips"}
    spec = small(algorithm, environment, config=config, stop={"agent_steps": 1})
    pixels, frames = play_randomly(spec)
    mean, deviation = pixels.mean_and_deviation()
    assert mean.shape == spec.catalogue_environment.observed_shape(spec.environment_config)
    assert frames >= DECISIONS
    assert 0 <= mean.min() <= mean.max() <= 255
    assert 0 < deviation < 128


def image_in(state: dict[str, Any], size: int) -> torch.Tensor:
    """The mean image and the deviation in a flat theta, whose first numbers they are."""
    theta: torch.Tensor = state["theta"][: size + 1]
    return theta


def loaded(spec: RunSpec, folder: Path) -> tuple[str, dict[str, Any]]:
    name = checkpoint.newest(folder / "checkpoints")
    assert name is not None
    return name, checkpoint.load(folder / "checkpoints" / name)


def train(spec: RunSpec, folder: Path, *, attempt: int = 1, resume: str | None = None) -> None:
    ended = Training(spec, folder, attempt=attempt, resume=resume).run()
    assert ended.state == "finished", ended.traceback


def plays_randomly(events: list[AnyEvent]) -> bool:
    return any(event.phase.startswith("playing") for event in only(StartingEvent, events))


def replayed(spec: RunSpec, replay: Any) -> list[NDArray[np.uint8]]:
    """The states of an evaluation's replay, simulated again."""
    env = make_env(spec.environment, spec.evaluation_config(spec.evaluation_protocol))
    state = np.empty(env.observation_shape, np.uint8)
    env.reset(int(replay["seed"]), state)
    states = []
    for action in replay["actions"]:
        states.append(state.copy())
        env.step(int(action), state)
    env.close()
    return states


@pytest.mark.parametrize(
    ("algorithm", "goes_on"),
    [
        pytest.param("paac", False, marks=pytest.mark.service),
        *(pytest.param(algorithm, True, marks=pytest.mark.long) for algorithm in LEARNING),
    ],
)
def test_every_method_trains_and_goes_on_with_its_image(
    algorithm: str, goes_on: bool, tmp_path: Path, fork_server: None
) -> None:
    """In checkpoints, resumes, forks, evaluations, replays and agents outside, bit for bit."""
    spec = catch(algorithm)
    mean, deviation = image(spec)
    wanted = torch.from_numpy(np.append(mean, deviation).astype(np.float32))
    size = mean.size
    train(spec, tmp_path)
    name, state = loaded(spec, tmp_path)
    assert torch.equal(image_in(state["learner"], size), wanted)
    target = state["learner"].get("target", state["learner"])
    if "theta_minus" in target:
        assert torch.equal(target["theta_minus"][: size + 1], wanted)
    torch.manual_seed(spec.seed)
    env = make_env(spec.environment, spec.environment_config)
    fresh = FlatParameters(METHODS[algorithm].network(spec.config, env)).theta
    assert (state["learner"]["theta"] != fresh)[size + 1 :].any(), "it has learned nothing"
    counters = state["counters"]
    assert counters["frames"] == DECISIONS + counters["agent_steps"]
    events = logged(tmp_path, 1)
    assert only(ReportEvent, events)[-1].frames == counters["frames"]
    assert any("centred by" in event.message for event in only(LogEvent, events))
    assert plays_randomly(events)
    if algorithm == "paac":  # a frame each step: those of the random play are no part of the rate
        rates = [columns(events, f"speed/{unit}_per_s") for unit in ("agent_steps", "frames")]
        assert rates[0] == rates[1] != []

    # What its last evaluation saw in its states, an agent outside the engine sees.
    path = tmp_path / "checkpoints" / name
    policy, agent = load_policy(spec, path, 5), Agent(spec, load_policy(spec, path, 5), env, {})
    evaluated = [episode for episode in only(EpisodeEvent, events) if episode.kind == "evaluation"][-1]
    with np.load(tmp_path / "replays" / evaluated.replay, allow_pickle=False) as replay:
        states = replayed(spec, replay)
        acted = [policy.act(state[None], np.zeros(1, int)) for state in states]
        assert np.array_equal([value_N[0] for _, value_N, _ in acted], replay["values"])
        policies = np.array([policy_NA[0] for _, _, policy_NA in acted])
        assert np.array_equal(policies.astype(replay["policies"].dtype), replay["policies"])
    assert [agent.act(state) for state in states] == [int(action_N[0]) for action_N, _, _ in acted]

    # A resume, and a fork with another seed, go on with the image, and play no random decisions again.
    for attempt, seed in ((2, spec.seed), (3, 7)) if goes_on else ():
        later = catch(algorithm, agent_steps=800, seed=seed)
        train(later, tmp_path, attempt=attempt, resume=name)
        _, gone_on = loaded(later, tmp_path)
        assert torch.equal(image_in(gone_on["learner"], size), wanted)
        assert gone_on["counters"]["frames"] == DECISIONS + gone_on["counters"]["agent_steps"]
        events = logged(tmp_path, attempt)
        assert only(StartedEvent, events)[0].resumed_from == name
        assert not plays_randomly(events)
        (tmp_path / "checkpoints" / loaded(later, tmp_path)[0]).unlink()
