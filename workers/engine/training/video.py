"""Videos and thumbnails of replays: the exact pipeline repeats the actions, and its frames are encoded."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import av
import cv2
import numpy as np
from numpy.typing import NDArray

from backend.specs.play import PlaySetup
from backend.specs.run import RunSpec
from workers.engine.envs import Env
from workers.engine.files import replacing
from workers.engine.training.restore import RecordedEpisode, environment_of_episode, environment_of_game

if TYPE_CHECKING:
    from workers.engine.training.emulator_states import EmulatorStates

SHORT_SIDE_PIXELS = 320
"""Small frames are enlarged by whole factors, so that pixels stay sharp."""
LONG_SIDE_PIXELS = 1_280
"""Frames are not enlarged beyond this."""

THUMBNAIL_PIXELS = 160
"""Longer side of a thumbnail."""
_THUMBNAIL_QUALITY = 80

_OBSERVATIONS_PER_SECOND = 15
"""Frame rate of observation videos; a player that shows both keeps them in step."""


def render(
    spec: RunSpec,
    replay: Path,
    out: Path,
    observed: Path | None = None,
    starts: Path | None = None,
    states: Path | None = None,
) -> int:
    """Write an MP4 of a replay to `out`, atomically.

    Args:
        spec: the run's specification.
        replay: an .npz written by `EpisodeRecorder.save`.
        out: the file to write.
        observed: where to write a second video, of the network's input, one frame per decision; not written
            if the observations are not images.
        starts: file of the start set of the replay's protocol; None if it has no set.
        states: where to write the emulator states of a long Atari episode; not written for others.

    Returns:
        The number of frames.

    Raises:
        ReplayMismatchError: the rewards differ from the recorded ones.
        ValueError: the starts are missing.
    """
    env, episode = environment_of_episode(spec, replay, starts)
    return _write_video(env, episode, out, observed, states)


def render_game(setup: PlaySetup, replay: Path, out: Path, states: Path | None = None) -> int:
    """Write an MP4 of a game that a person has played to `out`, atomically: every frame that was shown.

    Args:
        setup: setup of the game's session.
        replay: the recording as an .npz file.
        out: the file to write.
        states: as of `render`.

    Returns:
        The number of frames.

    Raises:
        ReplayMismatchError: the rewards, or the ROM, differ from the recorded ones.
    """
    env, episode = environment_of_game(setup, replay)
    if setup.environment.startswith("ALE/"):
        env.show_every_frame()  # type: ignore[attr-defined]
    return _write_video(env, episode, out, None, states)


def _write_video(
    env: Env, episode: RecordedEpisode, out: Path, observed: Path | None, states: Path | None
) -> int:
    observation = np.empty(env.observation_shape, env.observation_dtype)
    kept = None if states is None else _emulator_states(env)
    are_images = len(env.observation_shape) == 3 and env.observation_dtype == np.uint8
    with ExitStack() as files:
        video = files.enter_context(VideoFile.opened(out, env.frames_per_second))
        inputs = (
            files.enter_context(VideoFile.opened(observed, _OBSERVATIONS_PER_SECOND))
            if observed and are_images
            else None
        )
        env.on_frame = video.append
        env.reset(episode.seed, observation)
        for t in range(len(episode.actions)):
            if inputs is not None:
                inputs.append(side_by_side(observation))
            step = episode.repeat(env, t, observation)
            if kept is not None:
                kept.add(t + 1, step.frames)
    if states is not None and kept is not None:
        kept.save(states)
    env.close()
    return video.n_frames


def _emulator_states(env: Env) -> "EmulatorStates | None":
    """Collects the emulator states of an Atari game; None for other environments."""
    if type(env).__name__ != "AtariEnv":
        return None
    from workers.engine.envs.atari import AtariEnv
    from workers.engine.training.emulator_states import EmulatorStates

    assert isinstance(env, AtariEnv)
    return EmulatorStates(env)


def middle_frame(spec: RunSpec, replay: Path, starts: Path | None = None) -> NDArray[np.uint8]:
    """The frame in the middle of a replay, which is repeated up to there.

    Args:
        spec: the run's specification.
        replay: an .npz written by `EpisodeRecorder.save`.
        starts: file of the start set of the replay's protocol; None if it has no set.

    Returns:
        (H, W, 3) RGB.

    Raises:
        ReplayMismatchError: the rewards differ from the recorded ones.
        ValueError: the starts are missing, or nothing was drawn.
    """
    env, episode = environment_of_episode(spec, replay, starts)
    observation = np.empty(env.observation_shape, env.observation_dtype)
    frames: list[NDArray[np.uint8]] = []
    middle = len(episode.actions) // 2
    env.reset(episode.seed, observation)
    of_middle = 0
    for t in range(middle + 1):
        # Frames before cost time. Of decisions of one frame, only every other one is drawn.
        if t == max(0, middle - 1):
            env.on_frame = lambda frame: frames.append(frame.copy())
        if t == middle:
            of_middle = len(frames)
        episode.repeat(env, t, observation)
    env.close()
    if not frames:
        raise ValueError("no frame was drawn")
    return max(frames[of_middle:] or frames, key=np.std)  # flickering sprites are drawn every other frame


def middle_frame_of_video(video: Path) -> NDArray[np.uint8]:
    """The frame in the middle of a video that `render` has written, (H, W, 3) RGB.

    Raises:
        ValueError: it has no frames.
    """
    with av.open(str(video)) as container:
        stream = container.streams.video[0]
        stream.thread_count = 1
        middle = (stream.duration or 0) // 2
        container.seek(middle, stream=stream)  # to the key frame before it
        frame = None
        for frame in container.decode(stream):
            if frame.pts is None or frame.pts >= middle:
                break
        if frame is None:
            raise ValueError("the video has no frames")
        return np.asarray(frame.to_ndarray(format="rgb24"), np.uint8)


def write_thumbnail(frame: NDArray[np.uint8], out: Path) -> None:
    """Write a frame, (H, W, 3) RGB, as a JPEG whose longer side has `THUMBNAIL_PIXELS`, atomically."""
    height, width = frame.shape[:2]
    scale = THUMBNAIL_PIXELS / max(height, width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    method = cv2.INTER_AREA if scale < 1 else cv2.INTER_NEAREST
    resized = cv2.cvtColor(cv2.resize(frame, size, interpolation=method), cv2.COLOR_RGB2BGR)
    _, encoded = cv2.imencode(".jpg", resized, [cv2.IMWRITE_JPEG_QUALITY, _THUMBNAIL_QUALITY])
    with replacing(out) as partial:
        partial.write_bytes(encoded.tobytes())


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
