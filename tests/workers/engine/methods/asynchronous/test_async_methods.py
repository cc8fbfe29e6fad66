"""Each asynchronous method's gradient against a slow transcription of its algorithm, and how it acts."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from backend.specs.algorithms.async_q import AsyncQConfig
from tests.workers.engine.methods.asynchronous.oracles import (
    Objective,
    algorithm_1,
    algorithm_s1,
    algorithm_s2,
    gaussian_s2,
    sarsa,
)
from tests.workers.engine.methods.asynchronous.played import Played, check, spec_of
from workers.engine.methods.asynchronous.memory import FRAMES, Counts
from workers.engine.methods.asynchronous.q import EPSILON_PERIOD, Exploration

pytestmark = pytest.mark.usefixtures("float64")


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize(("recurrent", "updates"), [(False, 1), (True, 1), (True, 3)])
def test_a3c_gradient_equals_algorithm_s2(terminal: bool, recurrent: bool, updates: int) -> None:
    spec = spec_of("a3c", recurrent=recurrent, beta=0.05, value_coefficient=0.7)
    check(Played(spec, terminal=terminal, updates=updates), algorithm_s2)


@pytest.mark.parametrize("terminal", [False, True])
def test_continuous_a3c_gradient_equals_algorithm_s2(terminal: bool) -> None:
    spec = spec_of("a3c", "Pendulum-v1", recurrent=False, beta=0.05, value_coefficient=0.7)
    check(Played(spec, terminal=terminal), gaussian_s2)


@pytest.mark.parametrize("environment", ["CartPole-v1", "Pendulum-v1"])
def test_restored_lstm_state_gives_the_values_and_policy_of_the_actor_that_saved_it(environment: str) -> None:
    """Pendulum's actor has one LSTM for pi and another one for V."""
    spec = spec_of("a3c", environment, recurrent=True)
    saved, resumed = Played(spec, terminal=False), Played(spec, terminal=False)
    resumed.method.begin_episode()

    def following(played: Played) -> NDArray[Any]:
        """V and pi, or mu, of the next state; the same parameters in both actors."""
        played.method.begin_update()
        decision = played.method.choose(saved.after)
        return np.array([decision.value, *decision.policy_A])

    resumed.method.restore(saved.method.state())
    of_saved = following(saved)
    np.testing.assert_array_equal(following(resumed), of_saved)
    resumed.method.begin_episode()
    assert (abs(following(resumed) - of_saved) > 1e-3).all(), "both depend on what was restored"


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize(
    ("algorithm", "objective"),
    [("n_step_q", algorithm_s1), ("one_step_q", algorithm_1), ("one_step_sarsa", sarsa)],
)
def test_value_method_gradients_equal_their_algorithms(
    terminal: bool, algorithm: str, objective: Objective
) -> None:
    check(Played(spec_of(algorithm), terminal=terminal, updates=2), objective)


def test_sarsa_takes_the_action_of_its_target() -> None:
    played = Played(spec_of("one_step_sarsa"), terminal=False)
    chosen = played.method.state()["next_action"]
    assert chosen in (0, 1)
    assert played.method.choose(played.after).action == chosen
    assert played.method.state()["next_action"] is None


def test_sarsa_drops_the_next_action_at_an_episodes_end() -> None:
    played = Played(spec_of("one_step_sarsa"), terminal=False)
    played.method.begin_episode()
    assert played.method.state()["next_action"] is None


def test_a3c_samples_actions_from_pi() -> None:
    played = Played(spec_of("a3c"), terminal=False)
    state = np.zeros((1, 4))
    choices = [played.method.choose(state) for _ in range(4_000)]
    pi = choices[0].policy_A
    share = np.mean([choice.action for choice in choices])
    assert abs(share - pi[1]) <= 4 * (pi[0] * pi[1] / 4_000) ** 0.5
    assert 0.02 < pi[1] < 0.98


def exploration(frames: int, seed: int = 0) -> Exploration:
    counts = Counts(np.zeros((65, 4), np.int64))
    counts.restore({FRAMES: frames}, [0] * 64)
    config = spec_of("one_step_q", exploration_anneal_frames=4_000_000).config
    assert isinstance(config, AsyncQConfig)
    return Exploration(config, np.random.default_rng(seed), counts)


def test_final_epsilon_is_sampled_with_the_papers_probabilities() -> None:
    explored = exploration(4_000_000)
    drawn = []
    for _ in range(1_000):
        for _ in range(EPSILON_PERIOD):
            explored.step()
        drawn.append(explored.epsilon)
    for target, p in ((0.1, 0.4), (0.01, 0.3), (0.5, 0.3)):
        share = np.mean([epsilon == target for epsilon in drawn])
        assert abs(share - p) <= 4 * (p * (1 - p) / 1_000) ** 0.5, target


def test_final_epsilon_is_kept_for_its_period() -> None:
    explored = exploration(4_000_000)
    seen = []
    for _ in range(20 * EPSILON_PERIOD):
        explored.step()
        seen.append(explored.epsilon)
    changes = [n for n in range(1, len(seen)) if seen[n] != seen[n - 1]]
    assert changes
    assert all(n % EPSILON_PERIOD == 0 for n in changes)


@pytest.mark.parametrize(("frames", "fallen"), [(0, 0.0), (1_000_000, 0.25), (9_000_000, 1.0)])
def test_epsilon_is_annealed_from_one(frames: int, fallen: float) -> None:
    seen = set()
    for seed in range(20):
        explored = exploration(frames, seed)
        explored.step()
        seen.add(round(explored.epsilon, 9))
    assert seen == {round(1 + fallen * (target - 1), 9) for target in (0.1, 0.01, 0.5)}
