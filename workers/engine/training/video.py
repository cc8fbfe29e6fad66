"""Videos of replays: the exact pipeline repeats the actions and its frames are encoded as H.264."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
from numpy.typing import NDArray

from backend.specs.run import RunSpec
from workers.engine.envs import env_config, make_env
from workers.engine.files import replacing

SHORT_SIDE_PIXELS = 320
"""Small frames are enlarged by whole factors, so that pixels stay sharp."""
LONG_SIDE_PIXELS = 1_280
"""Frames are not enlarged beyond this."""

_OBSERVATIONS_PER_SECOND = 15
"""Frame rate of observation videos; a player that shows both keeps them in step."""


class ReplayMismatchError(RuntimeError):
    """Repeating a replay gave other rewards: another emulator version, or a damaged file."""


def render(spec: RunSpec, replay: Path, out: Path, observed: Path | None = None) -> int:
    """Write an MP4 of a replay to `out`, atomically.

    Args:
        spec: of its run.
        replay: an .npz written by `EpisodeRecorder.save`.
        out: the file to write.
        observed: where to write a second video, of the network's input, one frame per decision; not written
            if the observations are not images.

    Returns:
        The number of frames.

    Raises:
        ReplayMismatchError: the rewards differ from the recorded ones.
    """
    with np.load(replay, allow_pickle=False) as data:
        actions = data["actions"]
        rewards = data["rewards"]
        seed = int(data["seed"])
        protocol = str(data["protocol"]) or None  # none: a training episode
    config = env_config(spec, protocol)
    env = make_env(spec.environment, config)
    observation = np.empty(env.observation_shape, env.observation_dtype)
    are_images = len(env.observation_shape) == 3 and env.observation_dtype == np.uint8
    with ExitStack() as files:
        video = files.enter_context(VideoFile.opened(out, env.frames_per_second))
        inputs = (
            files.enter_context(VideoFile.opened(observed, _OBSERVATIONS_PER_SECOND))
            if observed and are_images
            else None
        )
        env.on_frame = video.append
        env.reset(seed, observation)
        for t, action in enumerate(actions):
            if inputs is not None:
                inputs.append(side_by_side(observation))
            step = env.step(action, observation)
            if step.reward != rewards[t]:
                raise ReplayMismatchError(
                    f"decision {t} gave reward {step.reward}, but {rewards[t]} was recorded: "
                    "the emulator's version differs, or the replay is damaged"
                )
    env.close()
    return video.n_frames


def side_by_side(observation: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """An observation as one RGB image: colours unchanged, stacked luminances in two columns, oldest first.

    Args:
        observation: (H, W, C); C is 3 for RGB.

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


class VideoFile:
    """An H.264 file being written."""

    def __init__(self, container: av.container.OutputContainer, frames_per_second: float) -> None:
        rate = Fraction(frames_per_second).limit_denominator(1000)
        self._container = container
        self._stream = container.add_stream("libx264", rate=rate)
        self._stream.pix_fmt = "yuv420p"
        self._stream.options = {"preset": "veryfast", "crf": "23", "tune": "animation"}
        self._stream.thread_count = 1
        self.n_frames = 0

    @classmethod
    @contextmanager
    def opened(cls, out: Path, frames_per_second: float) -> Iterator["VideoFile"]:
        """Write to `out`, atomically."""
        with (
            replacing(out) as partial,
            av.open(str(partial), "w", format="mp4", options={"movflags": "+faststart"}) as container,
        ):
            video = cls(container, frames_per_second)
            yield video
            container.mux(video._stream.encode())

    def append(self, frame: NDArray[np.uint8]) -> None:
        """Append a frame, (H, W, 3) RGB, of the size of the first one."""
        height, width = frame.shape[:2]
        factor = max(1, min(SHORT_SIDE_PIXELS // min(height, width), LONG_SIDE_PIXELS // max(height, width)))
        size = (width * factor // 2 * 2, height * factor // 2 * 2)
        large = np.asarray(cv2.resize(frame, size, interpolation=cv2.INTER_NEAREST), np.uint8)
        if self.n_frames == 0:
            self._stream.width, self._stream.height = size
        self._container.mux(self._stream.encode(av.VideoFrame.from_ndarray(large, format="rgb24")))
        self.n_frames += 1
