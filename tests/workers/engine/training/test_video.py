"""Videos of replays, decoded again."""

from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from backend.specs.run import parse_run_spec
from workers.engine.envs import make_env
from workers.engine.envs.racing import RacingEnv
from workers.engine.methods.recording import EpisodeRecorder
from workers.engine.training.loop import Training
from workers.engine.training.restore import ReplayMismatchError
from workers.engine.training.video import (
    middle_frame,
    middle_frame_of_video,
    render,
    side_by_side,
    write_thumbnail,
)


@pytest.mark.parametrize(
    ("environment", "size", "rate", "images"),
    # 12 decisions are 48 frames, of which every second is shown, and the no-ops' before them.
    [("ALE/Pong-v5", (320, 420), 30, range(24, 40)), ("CartPole-v1", (600, 400), 50, range(13, 14))],
)
def test_replay_renders_as_h264(
    tmp_path: Path, environment: str, size: tuple[int, int], rate: int, images: range
) -> None:
    spec = parse_run_spec({"algorithm": "paac", "environment": environment, "stop": {"agent_steps": 1}})
    env = make_env(spec.environment, spec.environment_config)
    observation = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(9, observation)
    recorder = EpisodeRecorder()
    for t in range(12):
        step = env.step(t % 2, observation)
        recorder.add(t % 2, step.reward, 0.5, np.full(len(env.action_names), 0.5), env.lives())
    replay = tmp_path / "replays" / "r.npz"
    recorder.save(replay, seed=9, protocol=None, frames_per_step=4, action_names=env.action_names)
    out, observed = tmp_path / "r.mp4", tmp_path / "seen.mp4"
    count = render(spec, replay, out, observed)
    if len(env.observation_shape) == 3:
        with av.open(str(observed)) as container:
            seen = [frame.to_ndarray(format="gray") for frame in container.decode(container.streams.video[0])]
        assert len(seen) == 12, "one image per decision"
        # The last decision's newest image, one decision before the environment's present one.
        before = observation[:, :, -2].astype(int)
        assert np.abs(seen[-1][before.shape[0] :, before.shape[1] :] - before).mean() < 4
        observed.unlink()
    assert not observed.exists()
    with av.open(str(out)) as container:
        stream = container.streams.video[0]
        decoded = [frame.to_ndarray(format="rgb24") for frame in container.decode(stream)]
        assert stream.codec_context.name == "h264"
        assert (stream.width, stream.height) == size
        assert stream.average_rate == rate
    assert len(decoded) == count
    assert count in images
    assert decoded[-1].std() > 5
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.mp4", "replays"]
    middle = middle_frame(spec, replay)
    of_video = cv2.resize(middle_frame_of_video(out), middle.shape[1::-1], interpolation=cv2.INTER_AREA)
    # The episode moves, and so does its middle by some frames; at its ends it looks otherwise.
    assert np.abs(of_video.astype(int) - middle).mean() < 4
    write_thumbnail(middle, tmp_path / "t.jpg")
    thumbnail = cv2.imread(str(tmp_path / "t.jpg"))
    assert thumbnail is not None
    assert (max(thumbnail.shape), thumbnail.shape[0] / thumbnail.shape[1]) == (
        160,
        pytest.approx(size[1] / size[0], rel=0.01),
    )
    assert (tmp_path / "t.jpg").stat().st_size < 16_000


def test_thumbnail_is_the_frame_in_the_middle_of_the_episode(tmp_path: Path) -> None:
    """Repeated no further than there: what comes later may even be damaged."""
    spec = parse_run_spec({"algorithm": "paac", "environment": "Catch-v0", "stop": {"agent_steps": 1}})
    env = make_env(spec.environment, spec.environment_config)
    observation = np.empty(env.observation_shape, env.observation_dtype)
    frames: list[NDArray[np.uint8]] = []
    env.on_frame = lambda frame: frames.append(frame.copy())
    env.reset(3, observation)
    recorder = EpisodeRecorder()
    shown = []
    for _ in range(9):
        step = env.step(1, observation)
        shown.append(frames[-1])
        recorder.add(1, step.reward, 0.0, np.full(3, 1 / 3), 0)
        assert not step.episode_over
    recorder.add(1, 99.0, 0.0, np.full(3, 1 / 3), 0)
    replay = tmp_path / "r.npz"
    recorder.save(replay, seed=3, protocol=None, frames_per_step=1, action_names=env.action_names)
    assert not np.array_equal(shown[5], shown[4])
    np.testing.assert_array_equal(middle_frame(spec, replay), shown[5])


@pytest.mark.parametrize("n_steps", [11, 13])
def test_thumbnail_of_decisions_of_one_frame_of_which_every_other_is_drawn(
    tmp_path: Path, n_steps: int
) -> None:
    spec = parse_run_spec(
        {
            "algorithm": "paac",
            "environment": "ALE/Pong-v5",
            "environment_config": {"frame_skip": 1},
            "stop": {"agent_steps": 1},
        }
    )
    env = make_env(spec.environment, spec.environment_config)
    observation = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(1, observation)
    recorder = EpisodeRecorder()
    for _ in range(n_steps):
        step = env.step(0, observation)
        recorder.add(0, step.reward, 0.0, np.full(len(env.action_names), 0.1), env.lives())
    replay = tmp_path / "r.npz"
    recorder.save(replay, seed=1, protocol=None, frames_per_step=1, action_names=env.action_names)
    assert middle_frame(spec, replay).std() > 5


def test_replay_that_differs_from_its_record_is_refused(tmp_path: Path) -> None:
    spec = parse_run_spec({"algorithm": "paac", "environment": "CartPole-v1", "stop": {"agent_steps": 1}})
    recorder = EpisodeRecorder()
    recorder.add(0, 7.0, 0.0, np.array([0.5, 0.5]), 0)
    replay = tmp_path / "r.npz"
    recorder.save(replay, seed=1, protocol=None, frames_per_step=1, action_names=("LEFT", "RIGHT"))
    with pytest.raises(ReplayMismatchError, match=r"decision 0 gave reward 1\.0, but 7\.0 was recorded"):
        render(spec, replay, tmp_path / "r.mp4")
    assert not (tmp_path / "r.mp4").exists()


@pytest.mark.service
@pytest.mark.parametrize(
    ("trained", "protocol"),
    [
        pytest.param({"noop_max": 0}, "noop_starts", marks=pytest.mark.long),
        ({"sticky_actions": 0.5}, "sticky_actions_5min"),
    ],
)
def test_evaluation_replay_uses_the_config_of_its_protocol(
    tmp_path: Path, trained: dict[str, Any], protocol: str
) -> None:
    """The run trains in another way than it is evaluated."""
    spec = parse_run_spec(
        {
            "algorithm": "paac",
            "environment": "ALE/Breakout-v5",
            "environment_config": trained,
            "config": {"n_e": 2, "n_w": 1, "evaluation_episodes": 1},
            "stop": {"agent_steps": 10},
        }
    )
    assert Training(spec, tmp_path).run().state == "finished"
    [replay] = (tmp_path / "replays").glob("*evaluation*.npz")
    assert render(spec, replay, tmp_path / "r.mp4") > 0
    with np.load(replay) as stored:
        assert str(stored["protocol"]) == protocol


def test_continuous_actions_are_stored_and_replayed(tmp_path: Path) -> None:
    spec = parse_run_spec({"algorithm": "a3c", "environment": "Pendulum-v1", "stop": {"agent_steps": 1}})
    env = make_env(spec.environment, spec.environment_config)
    observation = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(4, observation)
    recorder = EpisodeRecorder()
    action = np.empty(1, np.float32)
    for t in range(10):
        action[:] = np.sin(t) / 3  # the same memory, as vectorised environments have it
        recorder.add(action, env.step(action, observation).reward, 0.5, action, 0)
    replay = tmp_path / "r.npz"
    recorder.save(replay, seed=4, protocol=None, frames_per_step=1, action_names=env.action_names)
    with np.load(replay) as kept:
        np.testing.assert_array_equal(kept["actions"][:, 0], np.float32(np.sin(range(10)) / 3))
    assert render(spec, replay, tmp_path / "r.mp4") == 11


def test_observation_video_tiles_the_stack_and_keeps_colours() -> None:
    stack = np.stack([np.full((2, 3), 10 * c, np.uint8) for c in range(4)], axis=-1)
    image = side_by_side(stack)
    assert image.shape == (4, 6, 3)
    assert image[::2, ::3, 0].tolist() == [[0, 10], [20, 30]]
    colours = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    assert side_by_side(colours) is colours
    assert side_by_side(stack[:, :, :1]).shape == (2, 3, 3)


@pytest.mark.long
def test_replay_repeats_a_race_with_collisions(tmp_path: Path) -> None:
    """`render` compares the reward of each decision, also after the car has hit an opponent."""
    request = {"algorithm": "a3c", "environment": "Racing-Slow-Opponents-v0", "stop": {"agent_steps": 1}}
    spec = parse_run_spec(request)
    env = make_env(spec.environment, spec.environment_config)
    assert isinstance(env, RacingEnv)
    observation = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(1, observation)
    assert env.opponents is not None
    first, hits = env.opponents.bodies[0], 0
    recorder = EpisodeRecorder()
    for _ in range(90):
        hull = env.car.hull
        x, y = first.position - hull.position
        off = (np.arctan2(-x, y) - hull.angle + np.pi) % (2 * np.pi) - np.pi
        way = "LEFT" if off > 0.05 else "RIGHT" if off < -0.05 else "STRAIGHT"
        action = env.action_names.index(f"{way}_GAS")
        step = env.step(action, observation)
        hits += any(edge.other == first and edge.contact.touching for edge in hull.contacts)
        recorder.add(action, step.reward, 0.5, np.full(len(env.action_names), 1 / 9), env.lives())
    assert hits > 5
    replay = tmp_path / "r.npz"
    recorder.save(replay, seed=1, protocol="plain", frames_per_step=4, action_names=env.action_names)
    assert render(spec, replay, tmp_path / "r.mp4") > 0
    env.close()
