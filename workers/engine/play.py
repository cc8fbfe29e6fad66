"""One actor's own world: episodes one after another, counted, recorded and shown."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.specs.run import RunSpec
from workers.engine.envs import Step, make_world
from workers.engine.envs.camera import Camera
from workers.engine.learner import EpisodeEnd
from workers.engine.recording import EpisodeRecorder
from workers.engine.seeds import EpisodeSeeds


class Play:
    """Steps one world and keeps the books of its present episode.

    An episode is wholly determined by its seed and its actions, so these two are what `state` keeps of it.
    """

    observation: NDArray[Any]
    """The present state, (1, …); written again by the next step."""
    finished: EpisodeEnd | None
    """The episode that ended in the last step."""

    def __init__(self, spec: RunSpec, actor: int, *, recorded: bool) -> None:
        """Build the world; `begin` comes next.

        Args:
            spec: the run.
            actor: its number, the stream of its episodes' seeds.
            recorded: whether replays of its episodes are kept.
        """
        self.world = make_world(spec.environment, spec.environment_config)
        self.observation = np.empty((1, *self.world.observation_shape), self.world.observation_dtype)
        self._source = f"actor {actor}"
        self._seeds = EpisodeSeeds(spec.seed, [actor])
        self._recorded = recorded
        self._camera = Camera()
        self._picture: bytes | None = None

    @property
    def episodes_begun(self) -> int:
        """How many episodes this actor has begun, over all attempts."""
        return self._seeds.begun[0]

    @episodes_begun.setter
    def episodes_begun(self, begun: int) -> None:
        self._seeds.begun[0] = begun

    def begin(self) -> None:
        """Begin the next episode."""
        self._begin(self._seeds.next(0))
        self._recorder = EpisodeRecorder() if self._recorded else None

    def step(self, action: int, value: float, policy_A: NDArray[Any]) -> Step:
        """Take a decision; V or Q and pi of the present state are for the replay."""
        step = self._step(action)
        if self._recorder is not None:
            lives = 0 if step.ended else self.world.lives()
            self._recorder.add(action, step.reward, value, policy_A, lives)
        if step.ended:
            self.finished = EpisodeEnd(
                source=self._source,
                seed=self._seed,
                episode_return=self._return,
                length_steps=len(self._actions),
                length_frames=self._frames,
                crashed=step.crashed,
                recording=self._recorder,
            )
        return step

    def watch(self, on: bool) -> None:
        """Draw the play, or cease to."""
        self.world.on_frame = self._draw if on else None

    def take_picture(self) -> bytes | None:
        """The newest JPEG, once."""
        taken, self._picture = self._picture, None
        return taken

    def state(self) -> dict[str, Any]:
        """What `restore` needs to come to the same moment of the same episode."""
        return {"begun": self.episodes_begun, "seed": self._seed, "actions": list(self._actions)}

    def restore(self, state: dict[str, Any]) -> bool:
        """Play the kept actions again; the episode is not recorded, for what was thought is not known.

        Returns:
            Whether the world, which may have other settings by now, went the same way: `begin` comes next
            where it did not.
        """
        self.episodes_begun = state["begun"]
        self._begin(state["seed"])
        self._recorder = None
        return not any(self._step(action).ended for action in state["actions"])

    def close(self) -> None:
        """Close the world."""
        self.world.close()

    def _begin(self, seed: int) -> None:
        self._seed = seed
        self._actions: list[int] = []
        self._return = 0.0
        self._frames = 0
        self.finished = None
        self.world.reset(seed, self.observation[0])

    def _step(self, action: int) -> Step:
        step = self.world.step(action, self.observation[0])
        self._actions.append(action)
        self._return += step.reward
        self._frames += step.frames
        return step

    def _draw(self, picture: NDArray[np.uint8]) -> None:
        if (jpeg := self._camera.draw(picture)) is not None:
            self._picture = jpeg.tobytes()
