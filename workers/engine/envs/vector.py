"""Many environments stepped together (Clemente et al. 2017, section 3, Figure 1)."""

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.specs.run import RunSpec
from workers.engine.envs import Box, env_config, make_env
from workers.engine.envs.info import Totals, add_totals, info_of
from workers.engine.envs.shared import NOT_WATCHED, EnvArrays
from workers.engine.envs.slice import RESET, EnvSlice, run_slice
from workers.engine.processes.child import Child, preload, stop

MAX_COMMANDS = RESET
"""Step commands are the bytes below `RESET`: `slot * groups + group`."""
START_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class FinishedEpisode:
    """An episode that ended in the last step."""

    environment: int
    seed: int
    episode_return: float
    """Of the rewards before clipping."""
    length_steps: int
    length_frames: int
    crashed: bool = False
    """The environment crashed and was reset: the episode does not count."""
    crash: str = ""
    """How it crashed."""


class VectorEnv:
    """B environments behind one `step`, with autoreset in the same step.

    Observations lie in shared memory, in `slots` slots; a step fills one of them and leaves the others. With
    several groups, one group can step while the actions of another are computed: see `begin_step`.
    """

    def __init__(
        self,
        spec: RunSpec,
        *,
        environments: int,
        processes: int,
        slots: int,
        next_seed: Callable[[int], int],
        groups: int = 1,
        protocol: str | None = None,
        starts: Path | None = None,
        with_info: bool = False,
    ) -> None:
        """Start the processes and wait until every environment is built.

        Args:
            spec: the run.
            environments: B.
            processes: the number of processes that step them, at most as many as a group has environments; 0
                steps them in this process.
            slots: S; S times the number of groups is at most 255.
            groups: equal parts of the environments, in order, that can step at different times.
            next_seed: environment index -> seed of its next episode (below 2**32).
            protocol: protocol of an evaluation; None: play as in training.
            starts: file of start states; seed k then means the k-th, modulo their number.
            with_info: whether `take_info` will be called now and then.

        Raises:
            ChildError: a process could not start.
            UnsupportedProtocolError: the environment does not have the protocol.
            ValueError: too many slots, or groups of different sizes.
        """
        config = env_config(spec, protocol)
        probe = make_env(spec.environment, config)
        self.action_space = probe.action_space
        self.action_names = probe.action_names
        self.observation_shape = probe.observation_shape
        self.observation_dtype = probe.observation_dtype
        self._with_info = with_info and info_of(probe) is not None
        probe.close()
        if not 1 <= slots * groups <= MAX_COMMANDS:
            raise ValueError(f"slots times groups: 1 to {MAX_COMMANDS}, got {slots} times {groups}")
        if environments % groups:
            raise ValueError(
                f"groups: {environments} environments cannot be split into {groups} equal groups"
            )
        self._next_seed = next_seed
        size = environments // groups
        self.groups = [slice(g * size, (g + 1) * size) for g in range(groups)]
        """The environments of each group."""
        self.shared = EnvArrays(
            slots=slots,
            environments=environments,
            observation_shape=self.observation_shape,
            observation_dtype=self.observation_dtype.name,
            action_shape=self.action_space.shape if isinstance(self.action_space, Box) else (),
        )
        self.shared.live_environment[0] = NOT_WATCHED
        self._commands: list[socket.socket] = []
        self.children: list[Child] = []
        self._local: EnvSlice | None = None
        if processes == 0:
            parts = [range(group.start, group.stop) for group in self.groups]
            self._local = EnvSlice(spec, self.shared, parts, protocol=protocol, starts=starts)
        else:
            self._start(spec, processes, protocol, starts)
        self.shared.close()  # its file only: the arrays stay

    def _start(self, spec: RunSpec, processes: int, protocol: str | None, starts: Path | None) -> None:
        preload("workers.engine.envs.slice")
        size = self.groups[0].stop
        bounds = np.linspace(0, size, min(processes, size) + 1).astype(int)
        for first, end in pairwise(bounds.tolist()):
            mine, theirs = socket.socketpair()
            parts = [range(group.start + first, group.start + end) for group in self.groups]
            name = "the process of environments " + " and ".join(f"{p.start} to {p.stop - 1}" for p in parts)
            with theirs:
                child = Child(
                    run_slice, spec, self.shared, parts, protocol, starts, self._with_info, theirs, name=name
                )
            mine.settimeout(START_TIMEOUT_S)
            self._commands.append(mine)
            self.children.append(child)
        self._await_answers()
        for commands in self._commands:
            commands.settimeout(None)  # a machine that sleeps is not a dead one

    def reset(self) -> None:
        """Reset every environment; the first observations are in slot 0."""
        self._reseed(range(len(self.shared.next_seed_B)))
        self._begin(range(len(self.shared.next_seed_B)))

    def cut(self, environments: Sequence[int]) -> list[FinishedEpisode]:
        """End episodes that go on, and begin the next ones, with their first observations in slot 0.

        Raises:
            ChildError: a process failed, or has exited.
        """
        episodes = [self._episode(i) for i in environments]
        self._begin(environments)
        return episodes

    def _begin(self, environments: Sequence[int]) -> None:
        self.shared.acting_B[:] = False
        self.shared.acting_B[list(environments)] = True
        if self._local is not None:
            self._local.reset()
        else:
            self._send(RESET)
        self._await_answers()
        # Each environment's next seed is drawn ahead, since it resets within the step that ends its episode.
        self._reseed(environments)

    def step(
        self, action_B: NDArray[Any], slot: int, acting_B: NDArray[np.bool_] | None = None
    ) -> list[FinishedEpisode]:
        """Step environments; their next observations are in `slot`, rewards and episode ends in `shared`.

        Args:
            action_B: (B,) integers, or (B, D) float32 in a `Box`.
            slot: where the next observations go.
            acting_B: (B,) which environments step; None: all of them.

        Raises:
            ChildError: a process failed, or has exited.
        """
        for group, environments in enumerate(self.groups):
            acting = None if acting_B is None else acting_B[environments]
            self.begin_step(action_B[environments], slot, group, acting)
        return [episode for group in range(len(self.groups)) for episode in self.finish_step(group)]

    def begin_step(
        self,
        action_B: NDArray[Any],
        slot: int,
        group: int,
        acting_B: NDArray[np.bool_] | None = None,
    ) -> None:
        """Start a step of one group; `finish_step` waits for it. Arguments as of `step`, of the group.

        Raises:
            ChildError: a process failed, or has exited.
        """
        environments = self.groups[group]
        self.shared.action_B[environments] = action_B
        self.shared.acting_B[environments] = True if acting_B is None else acting_B
        if self._local is not None:
            self._local.step(slot, group)
        else:
            self._send(slot * len(self.groups) + group)

    def finish_step(self, group: int) -> list[FinishedEpisode]:
        """Wait for the step that `begin_step` started in this group.

        Call in the order of `begin_step`: an answer does not name its group.

        Raises:
            ChildError: a process failed, or has exited.
        """
        shared, environments = self.shared, self.groups[group]
        self._await_answers()
        over_B = shared.episode_over_B[environments] & shared.acting_B[environments]
        ended = (environments.start + np.flatnonzero(over_B)).tolist()
        finished = [self._episode(i) for i in ended]
        for i in ended:
            shared.episode_seed_B[i] = shared.next_seed_B[i]
        self._reseed(ended)
        return finished

    def _episode(self, i: int) -> FinishedEpisode:
        shared = self.shared
        return FinishedEpisode(
            environment=i,
            seed=int(shared.episode_seed_B[i]),
            episode_return=float(shared.episode_return_B[i]),
            length_steps=int(shared.episode_length_B[i]),
            length_frames=int(shared.episode_frames_B[i]),
            crashed=bool(shared.crashed_B[i]),
            crash=shared.crash_B[i].decode(errors="ignore") if shared.crashed_B[i] else "",
        )

    def take_info(self) -> Totals:
        """Scalars of custom environments' `info` that arrived since the last call.

        Raises:
            ChildError: a process failed.
        """
        if self._local is not None:
            return self._local.take_info()
        totals: Totals = {}
        for child in self.children if self._with_info else ():
            while child.channel.poll():
                add_totals(totals, child.reply())
        return totals

    def watch(self, environment: int | None) -> None:
        """Render this environment while it is stepped, or none."""
        self.shared.live_environment[0] = NOT_WATCHED if environment is None else environment

    def take_frame(self) -> bytes | None:
        """The watched environment's new frame as JPEG; None until there is another."""
        size = int(self.shared.live_frame_bytes[0])
        if not size:
            return None
        frame = self.shared.live_frame[:size].tobytes()
        self.shared.live_frame_bytes[0] = 0
        return frame

    def close(self) -> None:
        """Close the environments and end the processes."""
        if self._local is not None:
            self._local.close()
        for commands in self._commands:
            commands.close()
        stop(self.children)

    def _reseed(self, environments: Any) -> None:
        for i in environments:
            self.shared.next_seed_B[i] = self._next_seed(i)

    def _send(self, command: int) -> None:
        for commands, child in zip(self._commands, self.children, strict=True):
            try:
                commands.sendall(bytes([command]))
            except OSError as error:
                raise child.await_failure() from error

    def _await_answers(self) -> None:
        for commands, child in zip(self._commands, self.children, strict=True):
            try:
                answer = commands.recv(1)
            except OSError as error:
                raise child.await_failure() from error
            if not answer:
                raise child.await_failure()
