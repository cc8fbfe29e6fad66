"""Evaluations as a run makes them: the papers' pipeline, new starts each time, the papers' policy."""

from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any, Literal

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments.custom import CustomConfig
from backend.specs.events import EvaluationEvent
from backend.specs.run import parse_run_spec
from tests.support.atari_reference import reference
from tests.support.engine_process import logged
from tests.support.scripted_environment import N_ACTIONS, Outcome, Script, Scripted
from workers.engine.envs import make_env
from workers.engine.methods.episode_runner import EpisodeRunner
from workers.engine.methods.registry import METHODS
from workers.engine.nn.seeds import episode_seed
from workers.engine.training import evaluation, scoring
from workers.engine.training.evaluation import STREAM, EvaluationInterrupted, evaluate
from workers.engine.training.loop import Training


class Drawn:
    """Random actions; remembers what it saw and did in the first environment."""

    def __init__(self, n_actions: int) -> None:
        self._rng = np.random.default_rng(7)
        self._n_actions = n_actions
        self.observations: list[NDArray[Any]] = []
        self.actions: list[int] = []

    def act(
        self, observation_N: NDArray[Any], environment_N: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        n = len(observation_N)
        action_N = self._rng.integers(self._n_actions, size=n)
        self.observations.append(observation_N[0].copy())
        self.actions.append(int(action_N[0]))
        return action_N, np.zeros(n), np.zeros((n, self._n_actions))

    def forget(self, environment: int) -> None: ...


@pytest.mark.parametrize(
    "training", [{"noop_max": 0}, {"fire_at_reset": True}, {"frame_maximum": "luminance"}], ids=str
)
def test_agent_is_scored_through_the_papers_pipeline(training: dict[str, Any]) -> None:
    """Whatever it trained with: 1 to 30 no-ops, and the maximum of two RGB frames before luminance.

    In this game the order shows: sprites of several colours flicker over each other.
    """
    spec = parse_run_spec(
        {
            "algorithm": "paac",
            "environment": "ALE/Seaquest-v5",
            "environment_config": training,
            "stop": {"agent_steps": 1},
        }
    )
    policy, asked = Drawn(18), count()
    with pytest.raises(EvaluationInterrupted):
        evaluate(policy, spec, episodes=1, seed=3, processes=0, interrupted=lambda: next(asked) == 80)
    wanted, _ = reference("seaquest", episode_seed(3, STREAM, 0), policy.actions)
    assert len(policy.observations) == 80
    for t, (got, want) in enumerate(zip(policy.observations, wanted, strict=False)):
        np.testing.assert_allclose(got, want, rtol=0, atol=0.5001, err_msg=f"observation {t}")


def test_every_evaluation_of_a_run_has_starts_of_its_own(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts: list[list[int]] = []

    def here(*arguments: Any, **named: Any) -> Any:
        first = len(Scripted.seeds)
        result = evaluate(*arguments, **named | {"processes": 0})
        starts.append(Scripted.seeds[first : first + 3])
        return result

    monkeypatch.setattr(scoring, "evaluate", here)
    config = {
        "n_e": 1,
        "n_w": 1,
        "t_max": 5,
        "evaluation_episodes": 3,
        "evaluation_interval_agent_steps": 20,
    }
    request = {"algorithm": "paac", "seed": 4, "stop": {"agent_steps": 60}, "config": config}
    spec = parse_run_spec(script([Outcome(1.0)] * 6 + [Outcome(1.0, "terminated")]) | request)
    assert Training(spec, tmp_path).run().state == "finished"
    scores = [event for event in logged(tmp_path) if isinstance(event, EvaluationEvent)]
    assert [score.agent_steps for score in scores] == [20, 40, 60]
    for score, evaluated in zip(scores, starts, strict=True):
        assert evaluated == [episode_seed(score.seed, STREAM, k) for k in range(3)]
    played = [seed for evaluated in starts for seed in evaluated]
    assert len(set(played)) == 9
    assert not set(played) & {episode_seed(4, 0, k) for k in range(100)}, "starts of training"
    environments = [(score.seed, i) for score in scores for i in range(512)]
    trained = {episode_seed(seed, i, k) for seed, i in environments for k in range(3)}
    assert not set(played) & trained, "starts of the trainings with these seeds"


def test_crashed_episode_of_an_evaluation_is_replaced_and_not_scored(script: Script, tmp_path: Path) -> None:
    """Two environments play the script in turn: the first one crashes as the second one ends."""
    outcomes = [
        1.0,
        10.0,
        (0.0, "crashed"),
        (20.0, "terminated"),
        2.0,
        (3.0, "terminated"),
        (9.0, "terminated"),
    ]
    part = script([Outcome(*(outcome if isinstance(outcome, tuple) else (outcome,))) for outcome in outcomes])
    spec = parse_run_spec(part | {"algorithm": "paac", "stop": {"agent_steps": 1}})
    started = monotonic()
    result = evaluate(Drawn(N_ACTIONS), spec, episodes=2, seed=3, processes=0)
    assert 0 <= result.time_s <= monotonic() - started
    assert sorted(result.returns) == [5.0, 30.0]
    assert result.returns == [5.0, 30.0]
    assert result.lengths_frames == [2, 2]
    assert result.seeds == [episode_seed(3, STREAM, k) for k in (2, 1)], (
        "the first has the seed of its next one"
    )
    assert result.first_episode.episode_return == 5.0
    file = tmp_path / "first.npz"
    assert result.first_episode.recording is not None
    result.first_episode.recording.save(file, seed=0, protocol=None, frames_per_step=1, action_names=())
    assert np.load(file)["rewards"].tolist() == [2.0, 3.0]


def test_evaluation_cuts_and_counts_an_episode_that_does_not_end(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CustomConfig, "evaluation_cut_agent_steps", 4)
    monkeypatch.setattr(evaluation, "MAX_EVALUATION_ENVIRONMENTS", 1)
    part = script([Outcome(1.0)] * 4 + [Outcome(0.5), Outcome(0.5, "terminated")])
    spec = parse_run_spec(part | {"algorithm": "paac", "stop": {"agent_steps": 1}})
    result = evaluate(Drawn(N_ACTIONS), spec, episodes=3, seed=3, processes=0)
    assert (result.returns, result.lengths_frames) == ([4.0, 1.0, 4.0], [4, 2, 4])
    assert result.seeds == [episode_seed(3, STREAM, k) for k in range(3)]
    assert result.cut_note == (
        "; 2 of them did not end and were cut after 4 agent steps: set max_episode_agent_steps"
    )
    recording = result.first_episode.recording
    assert recording is not None
    recording.save(tmp_path / "x.npz", seed=0, protocol=None, frames_per_step=1, action_names=())
    assert np.load(tmp_path / "x.npz")["truncated"]


@pytest.mark.parametrize("end", ["terminated", "truncated"])
def test_recording_keeps_whether_a_limit_ended_the_episode(
    script: Script, tmp_path: Path, end: Literal["terminated", "truncated"]
) -> None:
    part = script([Outcome(1.0), Outcome(1.0, end)] * 50)
    spec = parse_run_spec(part | {"algorithm": "paac", "stop": {"agent_steps": 1}})
    evaluated = evaluate(Drawn(N_ACTIONS), spec, episodes=1, seed=3, processes=0).first_episode.recording
    runner = EpisodeRunner(spec, 0, recorded=True)
    runner.reset()
    while runner.finished is None:
        runner.step(0, 0.0, np.full(N_ACTIONS, 1 / N_ACTIONS))
    for recording in (evaluated, runner.finished.recording):
        assert recording is not None
        recording.save(tmp_path / "x.npz", seed=0, protocol=None, frames_per_step=1, action_names=())
        assert bool(np.load(tmp_path / "x.npz")["truncated"]) == (end == "truncated")


@pytest.mark.parametrize("algorithm", [a.id for a in ALGORITHMS.values() if a.action_values])
def test_action_values_are_scored_with_an_epsilon_of_5_percent(script: Script, algorithm: str) -> None:
    """Mnih et al. 2015, methods."""
    request = {"algorithm": algorithm, "stop": {"agent_steps": 1_000}}
    spec = parse_run_spec(script([Outcome(0.0)] * 99 + [Outcome(1.0, "terminated")]) | request)
    env = make_env(spec.environment, spec.environment_config)
    network = METHODS[algorithm].network(spec.config, env)
    env.close()
    policy = METHODS[algorithm].policy(network, torch.device("cpu"), 5)
    evaluate(policy, spec, episodes=30, seed=2, processes=0)
    states = torch.from_numpy(np.stack([decision.state for decision in Scripted.decisions]))
    with torch.no_grad():
        best_N = network(states).argmax(-1).numpy()
    explored_N = np.array([int(decision.action) for decision in Scripted.decisions]) != best_N
    p = 0.05 * (N_ACTIONS - 1) / N_ACTIONS  # a random action may be the best one
    n = len(explored_N)
    assert n >= 1_000
    assert abs(explored_N.mean() - p) <= 4 * (p * (1 - p) / n) ** 0.5
