"""Some of a vectorised world's environments, stepped one after the other in the calling process."""

import numpy as np
from numpy.typing import NDArray

from backend.specs.run import RunSpec
from workers.engine.envs import make_world, world_config
from workers.engine.envs.camera import Camera
from workers.engine.envs.shared import MAX_PICTURE_BYTES, NOBODY, SharedArrays


class WorldSlice:
    """Environments `first` to `last - 1` over the arrays they share with whoever chooses actions."""

    def __init__(
        self, spec: RunSpec, shared: SharedArrays, first: int, last: int, *, evaluation: bool = False
    ) -> None:
        config = world_config(spec, evaluation=evaluation)
        self._shared = shared
        self._worlds = {i: make_world(spec.environment, config) for i in range(first, last)}
        self._watched = NOBODY
        self._camera = Camera()

    def reset(self) -> None:
        """Begin an episode everywhere, into slot 0."""
        shared = self._shared
        for i in self._worlds:
            shared.ended_B[i] = False
            shared.episode_return_B[i] = shared.episode_length_B[i] = shared.episode_frames_B[i] = 0
            self._begin(i, 0)

    def step(self, slot: int) -> None:
        """Take the decisions in `action_B`; where an episode ends the next begins at once."""
        if self._shared.watched[0] != self._watched:
            self._watch(int(self._shared.watched[0]))
        for i in self._worlds:
            if self._shared.acting_B[i]:
                self._step(i, slot)

    def close(self) -> None:
        """Close every world."""
        for world in self._worlds.values():
            world.close()

    def _watch(self, watched: int) -> None:
        for i, world in self._worlds.items():
            world.on_frame = self._draw if i == watched else None
        self._watched = watched

    def _draw(self, picture: NDArray[np.uint8]) -> None:
        jpeg = self._camera.draw(picture)
        if jpeg is not None and len(jpeg) <= MAX_PICTURE_BYTES:
            self._shared.picture[: len(jpeg)] = jpeg
            self._shared.picture_bytes[0] = len(jpeg)

    def _begin(self, i: int, slot: int) -> None:
        shared = self._shared
        shared.episode_seed_B[i] = shared.seed_B[i]
        self._worlds[i].reset(int(shared.seed_B[i]), shared.observation_SB[slot, i])
        shared.lives_B[i] = self._worlds[i].lives()

    def _step(self, i: int, slot: int) -> None:
        shared = self._shared
        if shared.ended_B[i]:
            shared.episode_return_B[i] = shared.episode_length_B[i] = shared.episode_frames_B[i] = 0
        result = self._worlds[i].step(shared.action_B[i], shared.observation_SB[slot, i])
        shared.crashed_B[i] = result.crashed
        shared.reward_B[i] = result.reward
        shared.terminal_B[i] = result.terminal
        shared.ended_B[i] = result.ended
        shared.truncated_B[i] = result.truncated
        shared.frames_B[i] = result.frames
        shared.episode_return_B[i] += result.reward
        shared.episode_length_B[i] += 1
        shared.episode_frames_B[i] += result.frames
        if not result.ended:
            shared.lives_B[i] = self._worlds[i].lives()
            return
        if result.truncated:
            shared.final_observation_B[i] = shared.observation_SB[slot, i]
        ended_seed = shared.episode_seed_B[i]
        self._begin(i, slot)
        shared.episode_seed_B[i] = ended_seed
