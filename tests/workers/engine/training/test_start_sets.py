"""Start sets, verified by the real emulator, and evaluations from them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.specs.events import EndedEvent, EpisodeEvent, EvaluationEvent
from backend.specs.protocols import MAX_FRAMES
from backend.specs.run import RunSpec, parse_run_spec
from backend.specs.start_sets import STARTS_FILE, RecordedGame, StartPoint, StartSetContent
from tests.workers.engine.training.training_runs import columns, only, train
from workers.engine.envs import make_env, starts
from workers.engine.envs.atari import AtariEnv
from workers.engine.training.evaluation import EvaluationResult, evaluate
from workers.engine.training.start_sets import StartSetMismatchError, verify
from workers.engine.training.video import middle_frame, render

GAME = "ALE/Breakout-v5"
SEED = 5
PROTOCOL = "agent_starts:wall@1"


def spec_of(environment: str = GAME, **config: Any) -> RunSpec:
    return parse_run_spec(
        {
            "algorithm": "paac",
            "environment": environment,
            "environment_config": config,
            "stop": {"agent_steps": 1},
        }
    )


def played(environment: str = GAME, n: int = 120) -> tuple[list[int], list[float]]:
    """Actions and rewards of the first decisions of a random game."""
    spec = spec_of(environment)
    env = make_env(environment, spec.environment_config)
    observation = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(SEED, observation)
    rng = np.random.default_rng(0)
    actions, rewards = [], []
    for _ in range(n):
        actions.append(int(rng.integers(len(env.action_names))))
        step = env.step(actions[-1], observation)
        assert not step.episode_over
        rewards.append(step.reward)
    return actions, rewards


def set_of(decisions: list[int], environment: str = GAME) -> StartSetContent:
    actions, rewards = played(environment)
    return StartSetContent(
        environment=environment,
        source="agent",
        games=[
            RecordedGame(
                seed=SEED,
                environment_config=spec_of(environment).environment_config.model_dump(mode="json"),
                actions=RecordedGame.encoded(actions),
            )
        ],
        points=[StartPoint(game=0, decision=k, score=float(sum(rewards[:k]))) for k in decisions],
    )


class RandomPolicy:
    """Random actions from a seed."""

    def __init__(self, n_actions: int) -> None:
        self._rng = np.random.default_rng(3)
        self._A = n_actions

    def act(self, observation_N: Any, environment_N: Any) -> Any:
        N = len(environment_N)
        return self._rng.integers(self._A, size=N), np.zeros(N), np.full((N, self._A), 1 / self._A)

    def forget(self, environment: int) -> None:
        """Nothing is remembered."""


def evaluated(path: Path, episodes: int, processes: int, **config: Any) -> EvaluationResult:
    return evaluate(
        RandomPolicy(4),
        spec_of(**config),
        episodes=episodes,
        seed=0,
        processes=processes,
        protocol=PROTOCOL,
        starts=path,
    )


@pytest.mark.parametrize("environment", [GAME, "ALE/Seaquest-v5"])
def test_episode_continues_the_recorded_game(environment: str, tmp_path: Path) -> None:
    decisions = [100, 30, 102, 4]
    verified, derived = verify(set_of(decisions, environment))
    starts.save(tmp_path / "s.npz", derived)
    spec = spec_of(environment)
    config = spec.evaluation_config(PROTOCOL)
    started = make_env(environment, config, tmp_path / "s.npz")
    # The whole game in the evaluation's pipeline, from the power on.
    actions, _ = played(environment)
    again = make_env(environment, config.model_copy(update={"noop_max": 30}))
    assert isinstance(started, AtariEnv)
    assert isinstance(again, AtariEnv)
    expected, observation = (np.empty(again.observation_shape, np.uint8) for _ in range(2))
    for number, k in enumerate(decisions):
        again.reset(SEED, expected)
        for action in actions[:k]:
            again.step(action, expected)
        started.reset(number, observation)
        assert started.frames == again.frames == verified.points[number].frames
        assert started.lives() == again.lives()
        if k > 4:  # the first stack still has the frame of the reset
            np.testing.assert_array_equal(observation, expected)
        for action in actions[k : k + 15]:
            assert started.step(action, observation) == again.step(action, expected)
            np.testing.assert_array_equal(started.ale.getRAM(), again.ale.getRAM())
        np.testing.assert_array_equal(observation, expected)


def test_verified_set_verifies_again_and_gives_the_same_starts() -> None:
    verified, derived = verify(set_of([50, 90]))
    assert verified.rom_md5 == "f34f08e5eb96e500e851a80be3277a56"
    again, same = verify(verified)
    assert again == verified
    assert same == derived


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"ram_sha256": "0" * 64}, "game 0: ram before decision 50 differ"),
        ({"screen_sha256": "0" * 64}, "game 0: screen before decision 50 differ"),
        ({"frames": 7}, "game 0: frames before decision 50 differ"),
        ({"score": 99.0}, "game 0: the score before decision 50"),
        ({"decision": 3}, "game 0: .* among the first 16 frames"),
    ],
)
def test_other_state_than_recorded_is_refused(change: dict[str, Any], reason: str) -> None:
    verified, _ = verify(set_of([50]))
    changed = verified.points[0].model_copy(update=change)
    if change.get("decision"):
        changed = StartPoint(game=0, decision=3, score=0.0)
    with pytest.raises(StartSetMismatchError, match=reason):
        verify(verified.model_copy(update={"points": [changed]}))


def test_changed_action_is_refused() -> None:
    verified, _ = verify(set_of([50, 90]))
    actions = bytearray(verified.games[0].decisions())
    actions[80:90] = bytes([3] * 10)  # LEFT: the paddle is on the right otherwise
    game = verified.games[0].model_copy(update={"actions": RecordedGame.encoded(actions)})
    with pytest.raises(StartSetMismatchError, match="game 0"):
        verify(verified.model_copy(update={"games": [game]}))


def test_other_rom_is_refused() -> None:
    with pytest.raises(StartSetMismatchError, match="ROM"):
        verify(set_of([50]).model_copy(update={"rom_md5": "0" * 32}))


@pytest.mark.service
def test_score_from_a_set_is_the_same_twice_whatever_the_processes(tmp_path: Path) -> None:
    verified, derived = verify(set_of([50, 90]))
    starts.save(tmp_path / "s.npz", derived)
    first, second = (evaluated(tmp_path / "s.npz", 3, processes) for processes in (0, 2))
    assert (first.returns, first.lengths_frames) == (second.returns, second.lengths_frames)
    assert first.seeds == [0, 1, 2]
    assert verified.points[1].score > 0, "or it would not be seen if it counted"


def test_frames_of_the_start_count_towards_the_limit_and_its_score_does_not(tmp_path: Path) -> None:
    verified, derived = verify(set_of([50]))
    assert verified.points[0].frames
    starts.save(tmp_path / "s.npz", [starts.EpisodeStart(derived[0].state, derived[0].lead, 108_000 - 10)])
    result = evaluated(tmp_path / "s.npz", 1, 0)
    assert result.lengths_frames == [12], "three decisions: the limit is checked after each"
    assert result.returns == [0.0]


def test_starts_of_another_emulator_version_are_refused(tmp_path: Path, monkeypatch: Any) -> None:
    _, derived = verify(set_of([50]))
    starts.save(tmp_path / "s.npz", derived)
    monkeypatch.setattr("ale_py.__version__", "0.0.1")
    with pytest.raises(starts.StartsError, match=r"0\.0\.1"):
        make_env(GAME, spec_of().evaluation_config(PROTOCOL), tmp_path / "s.npz")


@pytest.mark.service
@pytest.mark.long
def test_own_evaluation_of_a_run_starts_from_its_set_and_its_replay_is_rendered_from_there(
    tmp_path: Path,
) -> None:
    _, [start] = verify(set_of([40]))
    late = replace(start, frames=MAX_FRAMES - 40)  # ten decisions are left
    starts.save(tmp_path / STARTS_FILE, [late])
    spec = parse_run_spec(
        {
            "algorithm": "paac",
            "environment": GAME,
            "config": {
                "network": "nips",
                "n_e": 2,
                "n_w": 1,
                "evaluation_episodes": 1,
                "evaluation_protocol": PROTOCOL,
            },
            "stop": {"agent_steps": 20},
        }
    )
    reported = train(spec, tmp_path)
    [ended] = only(EndedEvent, reported)
    assert ended.reason == "reached 20 agent steps"
    [score] = only(EvaluationEvent, reported)
    assert (score.protocol, score.lengths_frames) == (PROTOCOL, [40])
    assert columns(reported, f"eval/{PROTOCOL}/mean_return")
    [episode] = [event for event in only(EpisodeEvent, reported) if event.kind == "evaluation"]
    replay = tmp_path / "replays" / episode.replay
    with np.load(replay) as recorded:
        assert (str(recorded["protocol"]), len(recorded["actions"])) == (PROTOCOL, 10)
    n_frames = render(spec, replay, tmp_path / "replay.mp4", starts=tmp_path / STARTS_FILE)
    assert n_frames == 20, "every other frame of ten decisions"
    assert middle_frame(spec, replay, tmp_path / STARTS_FILE).shape == (210, 160, 3)
    with pytest.raises(ValueError, match="whose states are missing"):
        render(spec, replay, tmp_path / "other.mp4")
