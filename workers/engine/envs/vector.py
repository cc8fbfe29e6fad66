"""Many environments stepped together (Clemente et al. 2017, section 3, Figure 1)."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.specs.run import RunSpec
from workers.engine.envs import Box, make_world, world_config
from workers.engine.envs.process import RESET
from workers.engine.envs.shared import NOBODY, Layout, SharedArrays
from workers.engine.envs.slice import WorldSlice

MAX_SLOTS = RESET
START_TIMEOUT_S = 120.0


class WorldDiedError(RuntimeError):
    """A process that steps environments is gone; `signal` killed it, if one did."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        try:
            status = process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            status = 0
        self.signal = -status if status < 0 else None
        how = f"was killed by signal {-status}" if status < 0 else f"is gone (exit status {status})"
        super().__init__(f"a process of the engine {how}")


@dataclass(frozen=True, slots=True)
class FinishedEpisode:
    """An episode that ended in the last step."""

    environment: int
    seed: int
    episode_return: float
    """True, unclipped."""
    length_steps: int
    length_frames: int
    crashed: bool = False
    """The world broke and was begun anew: what there is of the episode counts for nothing."""


class VectorWorld:
    """B environments behind one `step`; each begins its next episode in the step in which one ends.

    Observations lie in shared memory, in `slots` slots; a step fills one of them and leaves the others.
    """

    def __init__(
        self,
        spec: RunSpec,
        *,
        environments: int,
        processes: int,
        slots: int,
        next_seed: Callable[[int], int],
        evaluation: bool = False,
    ) -> None:
        """Start the processes and wait until every world is built.

        Args:
            environments: B.
            processes: that step them, at most one an environment; 0 steps them in this process.
            slots: S, at most 255.
            next_seed: environment index -> seed of its next episode (below 2**32).
            evaluation: play under `evaluation_config`.

        Raises:
            WorldDiedError: a process could not start.
        """
        config = world_config(spec, evaluation=evaluation)
        probe = make_world(spec.environment, config)
        self.action_space = probe.action_space
        self.action_names = probe.action_names
        self.observation_shape = probe.observation_shape
        self.observation_dtype = probe.observation_dtype
        probe.close()
        if not 1 <= slots <= MAX_SLOTS:
            raise ValueError(f"slots: 1 to {MAX_SLOTS}, got {slots}")
        self._next_seed = next_seed
        layout = Layout.model_validate(
            {
                "slots": slots,
                "environments": environments,
                "observation_shape": self.observation_shape,
                "observation_dtype": self.observation_dtype.name,
                "action_shape": self.action_space.shape if isinstance(self.action_space, Box) else (),
            }
        )
        memory_fd = os.memfd_create("callboard-environments")
        self.shared = SharedArrays(layout, memory_fd, create=True)
        self._channels: list[socket.socket] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        self.shared.watched[0] = NOBODY
        self._local: WorldSlice | None = None
        if processes == 0:
            self._local = WorldSlice(spec, self.shared, 0, environments, evaluation=evaluation)
        else:
            self._start(spec, layout, memory_fd, processes, evaluation)
        os.close(memory_fd)

    def _start(self, spec: RunSpec, layout: Layout, memory_fd: int, processes: int, evaluation: bool) -> None:
        environments = layout.environments
        bounds = np.linspace(0, environments, min(processes, environments) + 1).astype(int)
        for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            mine, theirs = socket.socketpair()
            task = {
                "spec": spec.model_dump(mode="json"),
                "evaluation": evaluation,
                "layout": layout.model_dump(mode="json"),
                "memory_fd": memory_fd,
                "socket_fd": theirs.fileno(),
                "first": first,
                "last": last,
                "parent": os.getpid(),
            }
            command = [sys.executable, "-m", "workers.engine.envs.process", json.dumps(task)]
            # Out of the terminal's foreground group: Ctrl-C is the engine's to answer.
            self._processes.append(
                subprocess.Popen(command, pass_fds=(memory_fd, theirs.fileno()), process_group=0)
            )
            theirs.close()
            mine.settimeout(START_TIMEOUT_S)
            self._channels.append(mine)
        self._gather()
        for channel in self._channels:
            channel.settimeout(None)  # a machine that sleeps is not a dead one

    def reset(self) -> None:
        """Begin an episode everywhere; the first observations are in slot 0."""
        for i in range(len(self.shared.seed_B)):
            self.shared.seed_B[i] = self._next_seed(i)
        self._command(RESET)
        self._reseed(range(len(self.shared.seed_B)))

    def step(
        self, action_B: NDArray[Any], slot: int, acting_B: NDArray[np.bool_] | None = None
    ) -> list[FinishedEpisode]:
        """Take a decision everywhere; the next observations are in `slot`, the rest in `shared`.

        Args:
            action_B: (B,) integers, or (B, D) float32 in a `Box`.
            slot: where the next observations go.
            acting_B: (B,) who acts, where not all do; the others rest.

        Raises:
            WorldDiedError: a process is gone.
        """
        shared = self.shared
        shared.action_B[:] = action_B
        shared.acting_B[:] = True if acting_B is None else acting_B
        self._command(slot)
        ended = np.flatnonzero(shared.ended_B & shared.acting_B).tolist()
        finished = [
            FinishedEpisode(
                environment=i,
                seed=int(shared.episode_seed_B[i]),
                episode_return=float(shared.episode_return_B[i]),
                length_steps=int(shared.episode_length_B[i]),
                length_frames=int(shared.episode_frames_B[i]),
                crashed=bool(shared.crashed_B[i]),
            )
            for i in ended
        ]
        for i in ended:
            shared.episode_seed_B[i] = shared.seed_B[i]
        self._reseed(ended)
        return finished

    def watch(self, environment: int | None) -> None:
        """Draw this environment while it is stepped, or none."""
        self.shared.watched[0] = NOBODY if environment is None else environment

    def take_picture(self) -> bytes | None:
        """JPEG of the watched environment, once for each new one."""
        size = int(self.shared.picture_bytes[0])
        if not size:
            return None
        picture = self.shared.picture[:size].tobytes()
        self.shared.picture_bytes[0] = 0
        return picture

    def close(self) -> None:
        """Close the worlds and end the processes."""
        if self._local is not None:
            self._local.close()
        for channel in self._channels:
            channel.close()
        for process in self._processes:
            process.wait()

    def _reseed(self, environments: Any) -> None:
        for i in environments:
            self.shared.seed_B[i] = self._next_seed(i)

    def _command(self, command: int) -> None:
        if self._local is not None:
            self._local.reset() if command == RESET else self._local.step(command)
            return
        for channel, process in zip(self._channels, self._processes, strict=True):
            try:
                channel.sendall(bytes([command]))
            except OSError as error:
                raise WorldDiedError(process) from error
        self._gather()

    def _gather(self) -> None:
        for channel, process in zip(self._channels, self._processes, strict=True):
            try:
                answer = channel.recv(1)
            except OSError as error:
                raise WorldDiedError(process) from error
            if not answer:
                raise WorldDiedError(process)
