"""Videos of replays: the exact pipeline plays the actions again and its pictures become H.264."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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

_SEEN_A_SECOND = 15
"""Pictures of observations; whoever shows them beside the play keeps the two in step."""


class ReplayMismatchError(RuntimeError):
    """Playing a replay again did not give its rewards: another emulator version, or a damaged file."""


def render(spec: RunSpec, replay: Path, out: Path, observed: Path | None = None) -> int:
    """Write an MP4 of a replay to `out`, whole or not at all.

    Args:
        spec: the run it comes from.
        replay: an .npz as `EpisodeRecorder.save` writes it.
        out: the file to write.
        observed: where to write a second one, of what the network saw, a picture a decision; nothing is
            written where it saw no pictures.

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
    observation = np.empty(world.observation_shape, world.observation_dtype)
    pictures = len(world.observation_shape) == 3 and world.observation_dtype == np.uint8
    with ExitStack() as files:
        video = files.enter_context(_Video.opened(out, world.frames_per_second))
        seen = files.enter_context(_Video.opened(observed, _SEEN_A_SECOND)) if observed and pictures else None
        world.on_frame = video.show
        world.reset(seed, observation)
        for t, action in enumerate(actions):
            if seen is not None:
                seen.show(side_by_side(observation))
            step = world.step(action, observation)
            if step.reward != rewards[t]:
                raise ReplayMismatchError(f"decision {t} earned {step.reward}, recorded was {rewards[t]}")
    world.close()
    return video.n_pictures


def side_by_side(observation: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """An observation as one RGB picture: colours as they are, a stack of luminances two by two, oldest first.

    Args:
        observation: (H, W, C); C is 3 for colours.

    Returns:
        (H', W', 3).
    """
    H, W, C = observation.shape
    if C == 3:
        return observation
    columns = 2 if C > 1 else 1
    rows = -(-C // columns)
    grid = np.zeros((rows * H, columns * W), np.uint8)
    for c in range(C):
        row, column = divmod(c, columns)
        grid[row * H : (row + 1) * H, column * W : (column + 1) * W] = observation[:, :, c]
    return np.repeat(grid[:, :, None], 3, axis=2)


class _Video:
    """An H.264 file that is being written."""

    def __init__(self, container: av.container.OutputContainer, pictures_a_second: float) -> None:
        rate = Fraction(pictures_a_second).limit_denominator(1000)
        self._container = container
        self._stream = container.add_stream("libx264", rate=rate)
        self._stream.pix_fmt = "yuv420p"
        self._stream.options = {"preset": "veryfast", "crf": "23", "tune": "animation"}
        self._stream.thread_count = 1
        self.n_pictures = 0

    @classmethod
    @contextmanager
    def opened(cls, out: Path, pictures_a_second: float) -> Iterator["_Video"]:
        """Write to `out`, whole or not at all."""
        with (
            replacing(out) as partial,
            av.open(str(partial), "w", format="mp4", options={"movflags": "+faststart"}) as container,
        ):
            video = cls(container, pictures_a_second)
            yield video
            container.mux(video._stream.encode())

    def show(self, picture: NDArray[np.uint8]) -> None:
        """Append a picture, (H, W, 3) RGB."""
        height, width = picture.shape[:2]
        factor = max(1, SHORT_SIDE_PIXELS // min(height, width))
        size = (width * factor // 2 * 2, height * factor // 2 * 2)
        large = np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_NEAREST), np.uint8)
        if self.n_pictures == 0:
            self._stream.width, self._stream.height = size
        self._container.mux(self._stream.encode(av.VideoFrame.from_ndarray(large, format="rgb24")))
        self.n_pictures += 1
