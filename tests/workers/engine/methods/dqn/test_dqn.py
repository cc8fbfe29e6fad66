"""DQN's training: deterministic, also after a resume."""

from typing import Any

import numpy as np
import pytest
import torch

from backend.specs.problems import InvalidSpec
from backend.specs.run import RunSpec, parse_run_spec
from workers.engine.envs import env_config
from workers.engine.methods.base import StepResult
from workers.engine.methods.dqn import dqn
from workers.engine.methods.dqn.dqn import DqnLearner
from workers.engine.nn.policies import EpsilonGreedyPolicy
from workers.engine.training import checkpoint

SOON = {
    "learning_starts_agent_steps": 100,
    "exploration_anneal_agent_steps": 500,
    "replay_capacity": 400,
    "target_update_updates": 20,
}


def spec_of(environment: str = "CartPole-v1", seed: int = 3, **config: Any) -> RunSpec:
    return parse_run_spec(
        {
            "algorithm": "dqn",
            "environment": environment,
            "seed": seed,
            "device": "cpu",
            "stop": {"agent_steps": 10**6},
            "config": SOON | config,
        }
    )


def series(learner: DqnLearner, n: int) -> list[tuple[Any, ...]]:
    def row(result: StepResult) -> tuple[Any, ...]:
        episodes = [(e.seed, e.episode_return) for e in result.episodes]
        return (result.agent_steps, result.frames, result.updates, episodes, result.metrics)

    return [row(learner.advance(0.0, watched=False)) for _ in range(n)]


def test_same_seed_gives_the_same_series_and_another_does_not() -> None:
    first, second, other = (series(DqnLearner(spec_of(seed=seed)), 80) for seed in (3, 3, 4))
    assert first == second
    assert first != other
    assert sum(updates for _, _, updates, *_ in first) > 50


def test_frames_are_returned_only_while_watched() -> None:
    learner = DqnLearner(spec_of("Catch-v0"))
    frames = [learner.advance(0.0, watched=watched).live_frames for watched in (False, True, False)]
    assert [len(frame) for frame in frames] == [0, 1, 0]
    assert frames[1][0].startswith(b"\xff\xd8")  # a JPEG's first bytes
    learner.close()


class DoubleDqnLearner(DqnLearner):
    """Double DQN (van Hasselt et al. 2016): theta chooses the next action, theta_minus evaluates it."""

    def targets(
        self, reward_B: torch.Tensor, terminated_B: torch.Tensor, next_state_B: torch.Tensor
    ) -> torch.Tensor:
        best_B1 = self.q(self.network, next_state_B).argmax(-1, keepdim=True)
        next_q_B = self.q(self.target_network, next_state_B).gather(-1, best_B1)[:, 0]
        return reward_B + self.config.gamma * next_q_B * ~terminated_B


def test_subclass_that_overrides_targets_trains_another_algorithm() -> None:
    single, double = series(DqnLearner(spec_of()), 80), series(DoubleDqnLearner(spec_of()), 80)
    assert sum(updates for _, _, updates, *_ in double) > 50
    first = next(k for k, (value, other) in enumerate(zip(single, double, strict=True)) if value != other)
    assert single[first][2] == 1, "they differ from an update on"


def test_checkpoint_resumes_with_another_number_of_threads() -> None:
    learner = DqnLearner(spec_of(learner_threads=3))
    series(learner, 60)
    state = learner.state()
    again = DqnLearner(spec_of(learner_threads=2))
    again.restore(state)
    kept = again.state()
    assert kept["updates"] == state["updates"] > 0
    assert torch.equal(kept["theta"], state["theta"])
    for name, vector in state["optimizer"].items():
        assert torch.equal(kept["optimizer"][name], vector)
    assert sum(updates for _, _, updates, *_ in series(again, 10)) == 10


@pytest.mark.parametrize("environment", ["CartPole-v1", pytest.param("Catch-v0", marks=pytest.mark.long)])
def test_resuming_equals_never_having_stopped(tmp_path: Any, environment: str) -> None:
    more = {"network": "nips"} if environment == "Catch-v0" else {"learner_threads": 2}
    learner = DqnLearner(spec_of(environment, **more))
    series(learner, 60)
    checkpoint.save(tmp_path / "kept.pt", {"learner": learner.state()})
    expected = series(learner, 80)
    again = DqnLearner(spec_of(environment, **more))
    again.restore(checkpoint.load(tmp_path / "kept.pt")["learner"])
    assert series(again, 80) == expected
    assert sum(updates for _, _, updates, *_ in expected) == 80


def test_resume_refills_an_unsaved_replay_before_learning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dqn, "CHECKPOINTED_REPLAY_BYTES", 1_000)
    learner = DqnLearner(spec_of())
    warnings = [w for _ in range(60) for w in learner.advance(0.0, watched=False).warnings]
    assert len(warnings) == 1
    assert "refilled before learning continues" in warnings[0]
    state = learner.state()
    assert state["replay"] is None
    again = DqnLearner(spec_of())
    again.restore(state)
    results = [again.advance(0.0, watched=False) for _ in range(30)]
    updates = [result.updates for result in results]
    assert updates[:24] == [0] * 24
    assert updates[25:] == [1] * 5
    assert results[0].warnings == [dqn.REPLAY_NOT_RESTORED]
    assert [dqn.REPLAY_NOT_RESTORED in result.warnings for result in results].count(True) == 1
    assert again.agent_steps == 60 * 4 + 30 * 4


def test_resumes_without_the_replay_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dqn, "CHECKPOINTED_REPLAY_BYTES", 1_000)
    learner = DqnLearner(spec_of())
    series(learner, 60)
    state = learner.state()
    whole = series(learner, 80)
    resumed = []
    for _ in range(2):
        again = DqnLearner(spec_of())
        again.restore(state)
        resumed.append(series(again, 80))
    assert resumed[0] == resumed[1]
    assert resumed[0] != whole
    assert sum(updates for _, _, updates, *_ in resumed[0]) > 50


def test_epsilon_anneals_linearly_and_theta_minus_copies_every_n_updates() -> None:
    learner = DqnLearner(spec_of())
    theta_minus, synced, updates = learner.theta_minus.clone(), [], 0
    for k in range(150):
        advance = learner.advance(0.0, watched=False)
        epsilon = advance.metrics["exploration/epsilon"]
        # Of the last of four decisions, of which the first 500 are annealed.
        assert epsilon == pytest.approx(max(1.0 - 0.95 * (4 * k + 3) / 500, 0.05))
        if not torch.equal(learner.theta_minus, theta_minus):
            theta_minus = learner.theta_minus.clone()
            synced.append(updates)
        updates += advance.updates
    assert synced == [20, 40, 60, 80, 100, 120]


def test_evaluation_policy_is_the_papers_epsilon_greedy() -> None:
    learner = DqnLearner(spec_of())
    policy = learner.policy(0)
    assert isinstance(policy, EpsilonGreedyPolicy)
    rng = np.random.default_rng(0)
    state_N = rng.normal(size=(20_000, 4)).astype(np.float32)
    with torch.no_grad():
        best_N = learner.network(torch.from_numpy(state_N)).argmax(-1).numpy()
    action_N, _, _ = policy.act(state_N, np.arange(20_000))
    # Of two actions, half of the random ones are the best, too.
    assert np.mean(action_N != best_N) == pytest.approx(0.05 / 2, abs=0.005)
    pong = spec_of("ALE/Pong-v5", network="nips")
    assert env_config(pong, pong.evaluation_protocol).model_dump()["max_frames"] == 18_000
    assert env_config(pong, None).model_dump()["max_frames"] == 108_000


def test_live_settings_change_while_training() -> None:
    learner = DqnLearner(spec_of())
    changed = learner.config.model_copy(update={"learning_rate": 0.5, "agent_steps_per_update": 7})
    learner.change(changed)
    results = [learner.advance(0.0, watched=False) for _ in range(20)]
    assert {result.agent_steps for result in results} == {7}
    assert {result.metrics["optim/learning_rate"] for result in results if result.updates} == {0.5}


def test_learning_start_beyond_the_replay_capacity_is_refused() -> None:
    with pytest.raises(
        InvalidSpec, match=r"config\.learning_starts_agent_steps: .*must not exceed replay_capacity"
    ):
        spec_of(learning_starts_agent_steps=500)


def test_restore_refuses_the_state_of_another_network() -> None:
    state = DqnLearner(spec_of("Acrobot-v1")).state()
    with pytest.raises(ValueError, match="another network"):
        DqnLearner(spec_of()).restore(state)
