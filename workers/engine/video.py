"""Videos of replays: the exact pipeline plays the actions again and its pictures become H.264."""

from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
from numpy.typing import NDArray

from backend.specs.run import RunSpec
from workers.engine.envs import make_world, world_config
from workers.engine.files import replacing

SHORT_SIDE_PIXELS = 320
"""Small pictures are enlarged by whole factors, so that pixels stay sharp."""


class ReplayMismatchError(RuntimeError):
    """Playing a replay again did not give its rewards: another emulator version, or a damaged file."""


def render(spec: RunSpec, replay: Path, out: Path) -> int:
    """Write an MP4 of a replay to `out`, whole or not at all.

    Args:
        spec: the run it comes from.
        replay: an .npz as `EpisodeRecorder.save` writes it.
        out: the file to write.

    Returns:
        The number of pictures.

    Raises:
        ReplayMismatchError: the rewards differ from the recorded ones.
    """
    with np.load(replay, allow_pickle=False) as data:
        actions = data["actions"]
        rewards = data["rewards"]
        seed = int(data["seed"])
        evaluation = bool(data["evaluation"])
    config = world_config(spec, evaluation=evaluation)
    world = make_world(spec.environment, config)
    pictures = 0
    with (
        replacing(out) as partial,
        av.open(str(partial), "w", format="mp4", options={"movflags": "+faststart"}) as container,
    ):
        stream = container.add_stream(
            "libx264", rate=Fraction(world.frames_per_second).limit_denominator(1000)
        )
        stream.pix_fmt = "yuv420p"
        stream.options = {"preset": "veryfast", "crf": "23", "tune": "animation"}
        stream.thread_count = 1

        def show(picture: NDArray[np.uint8]) -> None:
            nonlocal pictures
            height, width = picture.shape[:2]
            factor = max(1, SHORT_SIDE_PIXELS // min(height, width))
            size = (width * factor // 2 * 2, height * factor // 2 * 2)
            large = np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_NEAREST), np.uint8)
            if pictures == 0:
                stream.width, stream.height = size
            container.mux(stream.encode(av.VideoFrame.from_ndarray(large, format="rgb24")))
            pictures += 1

        world.on_frame = show
        observation = np.empty(world.observation_shape, world.observation_dtype)
        world.reset(seed, observation)
        for t, action in enumerate(actions):
            step = world.step(action, observation)
            if step.reward != rewards[t]:
                raise ReplayMismatchError(f"decision {t} earned {step.reward}, recorded was {rewards[t]}")
        container.mux(stream.encode())
    world.close()
    return pictures
