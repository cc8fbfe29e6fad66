"""DQN at work: the same each time, also after a stop."""

from typing import Any

import numpy as np
import pytest
import torch

from backend.specs.run import InvalidSpec, RunSpec, parse_run_spec
from workers.engine import checkpoint
from workers.engine.algorithms import dqn
from workers.engine.algorithms.dqn import Dqn
from workers.engine.envs import world_config
from workers.engine.learner import Advance
from workers.engine.policies import EpsilonGreedyPolicy

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


def series(learner: Dqn, n: int) -> list[tuple[Any, ...]]:
    def told(advance: Advance) -> tuple[Any, ...]:
        episodes = [(e.seed, e.episode_return) for e in advance.episodes]
        return (advance.agent_steps, advance.frames, advance.updates, episodes, advance.internals)

    return [told(learner.advance(0.0, watched=False)) for _ in range(n)]


def test_the_same_seed_gives_the_same_series_and_another_does_not() -> None:
    first, second, other = (series(Dqn(spec_of(seed=seed)), 80) for seed in (3, 3, 4))
    assert first == second
    assert first != other
    assert sum(updates for _, _, updates, *_ in first) > 50


def test_a_checkpoint_goes_on_with_another_number_of_threads() -> None:
    learner = Dqn(spec_of(learner_threads=3))
    series(learner, 60)
    state = learner.state()
    again = Dqn(spec_of(learner_threads=2))
    again.restore(state)
    kept = again.state()["shard"]
    assert kept["updates"] == state["shard"]["updates"] > 0
    assert torch.equal(kept["theta"], state["theta"])
    for name, vector in state["shard"]["statistics"].items():
        assert torch.equal(kept["statistics"][name], vector)
    assert sum(updates for _, _, updates, *_ in series(again, 10)) == 10


@pytest.mark.parametrize("environment", ["CartPole-v1", pytest.param("Catch-v0", marks=pytest.mark.long)])
def test_resuming_equals_never_having_stopped(tmp_path: Any, environment: str) -> None:
    more = {"network": "nips"} if environment == "Catch-v0" else {"learner_threads": 2}
    learner = Dqn(spec_of(environment, **more))
    series(learner, 60)
    checkpoint.save(tmp_path / "kept.pt", {"learner": learner.state()})
    expected = series(learner, 80)
    again = Dqn(spec_of(environment, **more))
    again.restore(checkpoint.load(tmp_path / "kept.pt")["learner"])
    assert series(again, 80) == expected
    assert sum(updates for _, _, updates, *_ in expected) == 80


def test_a_replay_too_large_to_keep_is_filled_again_before_learning_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dqn, "CHECKPOINTED_REPLAY_BYTES", 1_000)
    learner = Dqn(spec_of())
    warnings = [w for _ in range(60) for w in learner.advance(0.0, watched=False).warnings]
    assert len(warnings) == 1
    assert "filled again before learning goes on" in warnings[0]
    state = learner.state()
    assert state["replay"] is None
    again = Dqn(spec_of())
    again.restore(state)
    told = [again.advance(0.0, watched=False) for _ in range(30)]
    updates = [advance.updates for advance in told]
    assert updates[:24] == [0] * 24
    assert updates[25:] == [1] * 5
    assert told[0].warnings == [dqn.REFILLED]
    assert [dqn.REFILLED in advance.warnings for advance in told].count(True) == 1
    assert again._agent_steps == 60 * 4 + 30 * 4


def test_epsilon_falls_in_a_line_and_theta_minus_follows_every_n_updates() -> None:
    learner = Dqn(spec_of())
    theta_minus, synced, updates = learner._replica.theta_minus.clone(), [], 0
    for k in range(150):
        advance = learner.advance(0.0, watched=False)
        told = advance.internals["exploration/epsilon"]
        # Of the last of four decisions, of which the first 500 are annealed.
        assert told == pytest.approx(max(1.0 - 0.95 * (4 * k + 3) / 500, 0.05))
        if not torch.equal(learner._replica.theta_minus, theta_minus):
            theta_minus = learner._replica.theta_minus.clone()
            synced.append(updates)
        updates += advance.updates
        theta = torch.cat([shard.theta for shard in learner._server.shards])
        learner._replica.pull()
        assert torch.equal(learner._replica.theta, theta)
    assert synced == [20, 40, 60, 80, 100, 120]


def test_acts_as_the_papers_where_it_is_scored() -> None:
    learner = Dqn(spec_of())
    policy = learner.policy(0)
    assert isinstance(policy, EpsilonGreedyPolicy)
    rng = np.random.default_rng(0)
    state_N = rng.normal(size=(20_000, 4)).astype(np.float32)
    with torch.no_grad():
        best_N = learner._replica.network(torch.from_numpy(state_N)).argmax(-1).numpy()
    action_N, _, _ = policy.act(state_N, np.arange(20_000))
    # Of two actions, half of the random ones are the best, too.
    assert np.mean(action_N != best_N) == pytest.approx(0.05 / 2, abs=0.005)
    pong = spec_of("ALE/Pong-v5", network="nips")
    assert world_config(pong, evaluation=True).model_dump()["max_frames"] == 18_000
    assert world_config(pong, evaluation=False).model_dump()["max_frames"] == 108_000


def test_settings_change_while_it_trains() -> None:
    learner = Dqn(spec_of())
    changed = learner.config.model_copy(update={"learning_rate": 0.5, "agent_steps_per_update": 7})
    learner.change(changed)
    assert [shard.learning_rate for shard in learner._server.shards] == [0.5]
    assert learner.advance(0.0, watched=False).agent_steps == 7


def test_a_start_that_can_never_come_is_refused() -> None:
    with pytest.raises(
        InvalidSpec, match=r"config\.learning_starts_agent_steps: .*more than replay_capacity"
    ):
        spec_of(learning_starts_agent_steps=500)


def test_a_state_of_another_network_is_refused() -> None:
    state = Dqn(spec_of("Acrobot-v1")).state()
    with pytest.raises(ValueError, match="another network"):
        Dqn(spec_of()).restore(state)
