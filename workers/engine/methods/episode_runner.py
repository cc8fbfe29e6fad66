"""One actor's environment: episodes one after another, counted, recorded and shown live."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.specs.run import RunSpec
from workers.engine.envs import Box, Step, make_env
from workers.engine.envs.base import Action
from workers.engine.envs.images import FrameEncoder
from workers.engine.envs.info import Totals, info_of
from workers.engine.methods.base import EpisodeEnd
from workers.engine.methods.recording import EpisodeRecorder
from workers.engine.nn.seeds import EpisodeSeeds


class EpisodeRunner:
    """Steps one environment and keeps the record of its current episode.

    An episode is wholly determined by its seed and its actions, so `state` keeps only these two of it.
    """

    observation: NDArray[Any]
    """The current observation, (1, …); overwritten by the next step."""
    finished: EpisodeEnd | None
    """The episode that ended in the last step."""

    def __init__(self, spec: RunSpec, actor: int, *, recorded: bool) -> None:
        """Build the environment; call `reset` next.

        Args:
            spec: the run.
            actor: the actor's number, the random stream of its episode seeds.
            recorded: whether to record episodes for replays.
        """
        self.env = make_env(spec.environment, spec.environment_config)
        self.observation = np.empty((1, *self.env.observation_shape), self.env.observation_dtype)
        self._info = info_of(self.env)
        self._source = f"actor {actor}"
        self._seeds = EpisodeSeeds(spec.seed, [actor])
        self._recorded = recorded
        self._encoder = FrameEncoder()
        self._live_frame: bytes | None = None

    @property
    def episodes_begun(self) -> int:
        """Number of episodes that this actor has begun, over all attempts."""
        return self._seeds.begun[0]

    @episodes_begun.setter
    def episodes_begun(self, begun: int) -> None:
        self._seeds.begun[0] = begun

    def reset(self) -> None:
        """Begin the next episode."""
        self._begin(self._seeds.next(0))
        self._recorder = EpisodeRecorder() if self._recorded else None

    def step(self, action: Action, value: float, policy_A: NDArray[Any]) -> Step:
        """Take a decision; V or max Q, and pi or Q, of the current state are recorded for the replay."""
        step = self._step(action)
        if self._recorder is not None:
            lives = 0 if step.episode_over else self.env.lives()
            self._recorder.add(action, step.reward, value, policy_A, lives)
            self._recorder.truncated = step.truncated
        if step.episode_over:
            self.finished = EpisodeEnd(
                source=self._source,
                seed=self._seed,
                episode_return=self._return,
                length_steps=len(self._actions),
                length_frames=self._frames,
                crashed=step.crashed,
                crash=step.crash,
                recording=self._recorder,
            )
        return step

    def set_live(self, on: bool) -> None:
        """Encode live frames, or stop encoding them."""
        self.env.on_frame = self._draw if on else None

    def take_frame(self) -> bytes | None:
        """JPEG of the newest live frame; None if it was taken already."""
        taken, self._live_frame = self._live_frame, None
        return taken

    @property
    def has_info(self) -> bool:
        """Whether `take_info` returns anything, ever."""
        return self._info is not None

    def take_info(self) -> Totals:
        """Scalars of a custom environment's `info` since the last call."""
        return {} if self._info is None else self._info.take()

    def state(self) -> dict[str, Any]:
        """What `restore` needs to return to this step of this episode."""
        # Plain numbers: a checkpoint with NumPy's arrays is not loaded.
        actions = np.asarray(self._actions).tolist()
        return {"begun": self.episodes_begun, "seed": self._seed, "actions": actions}

    def restore(self, state: dict[str, Any]) -> bool:
        """Repeat the actions of the current episode, which is not recorded: values and policies are unknown.

        Returns:
            Whether none of the actions has ended the episode. If one has, as after a change of the
            environment's settings, call `reset` next.
        """
        self.episodes_begun = state["begun"]
        self._begin(state["seed"])
        self._recorder = None
        actions: list[Action] = state["actions"]
        if isinstance(self.env.action_space, Box):
            actions = [np.asarray(action, np.float32) for action in actions]
        has_ended = any(self._step(action).episode_over for action in actions)
        self.take_info()  # that is in the metrics already
        return not has_ended

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def _begin(self, seed: int) -> None:
        self._seed = seed
        self._actions: list[Action] = []
        self._return = 0.0
        self._frames = 0
        self.finished = None
        self.env.reset(seed, self.observation[0])

    def _step(self, action: Action) -> Step:
        step = self.env.step(action, self.observation[0])
        self._actions.append(action)
        self._return += step.reward
        self._frames += step.frames
        return step

    def _draw(self, frame: NDArray[np.uint8]) -> None:
        if (jpeg := self._encoder.encode(frame)) is not None:
            self._live_frame = jpeg.tobytes()
