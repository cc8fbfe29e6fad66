"""Some of a vectorised environment's environments, stepped one after the other. Needs no torch.

A child process that steps a slice gets commands of one byte over a socket of its own and answers with the
same byte: for cheap environments, pickled requests would take longer than the steps.
"""

import socket
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from backend.specs.run import RunSpec
from workers.engine.envs import env_config, make_env
from workers.engine.envs.images import FrameEncoder
from workers.engine.envs.info import SEND_INTERVAL_S, Totals, add_totals, info_of
from workers.engine.envs.shared import MAX_CRASH_BYTES, MAX_LIVE_FRAME_BYTES, NOT_WATCHED, EnvArrays
from workers.engine.processes.child import Channel

RESET = 255
"""Command: start new episodes in the environments of `acting_B`, into slot 0. Any smaller byte is
slot * groups + group: step that group into that slot."""
INFO = "info"
"""Kind of a message: scalars of custom environments' `info`."""


class EnvSlice:
    """Some environments of each group, over the arrays they share with the process that chooses actions."""

    def __init__(
        self,
        spec: RunSpec,
        shared: EnvArrays,
        groups: Sequence[range],
        *,
        protocol: str | None = None,
        starts: Path | None = None,
    ) -> None:
        """Build the environments; `groups` are the indices of this slice's part of each group."""
        config = env_config(spec, protocol)
        self._shared = shared
        self._groups = groups
        self._envs = {i: make_env(spec.environment, config, starts) for group in groups for i in group}
        infos = [info_of(env) for env in self._envs.values()]
        self._infos = [info for info in infos if info is not None]
        self._watched = NOT_WATCHED
        self._encoder = FrameEncoder()

    def reset(self) -> None:
        """Reset the environments of `acting_B`; the first observations go into slot 0."""
        shared = self._shared
        for i in self._envs:
            if not shared.acting_B[i]:
                continue
            shared.episode_over_B[i] = False
            shared.episode_return_B[i] = shared.episode_length_B[i] = shared.episode_frames_B[i] = 0
            self._begin(i, 0)

    def step(self, slot: int, group: int) -> None:
        """Step a group with its actions in `action_B`; where an episode ends, the next begins immediately."""
        if self._shared.live_environment[0] != self._watched:
            self._watch(int(self._shared.live_environment[0]))
        for i in self._groups[group]:
            if self._shared.acting_B[i]:
                self._step(i, slot)

    @property
    def has_info(self) -> bool:
        """Whether `take_info` returns anything, ever."""
        return bool(self._infos)

    def take_info(self) -> Totals:
        """Scalars of custom environments' `info` since the last call."""
        totals: Totals = {}
        for info in self._infos:
            add_totals(totals, info.take())
        return totals

    def close(self) -> None:
        """Close every environment."""
        for env in self._envs.values():
            env.close()

    def _watch(self, live_environment: int) -> None:
        for i, env in self._envs.items():
            env.on_frame = self._draw if i == live_environment else None
        self._watched = live_environment

    def _draw(self, frame: NDArray[np.uint8]) -> None:
        jpeg = self._encoder.encode(frame)
        if jpeg is not None and len(jpeg) <= MAX_LIVE_FRAME_BYTES:
            self._shared.live_frame[: len(jpeg)] = jpeg
            self._shared.live_frame_bytes[0] = len(jpeg)

    def _begin(self, i: int, slot: int) -> None:
        shared = self._shared
        shared.episode_seed_B[i] = shared.next_seed_B[i]
        self._envs[i].reset(int(shared.next_seed_B[i]), shared.observation_SB[slot, i])
        shared.lives_B[i] = self._envs[i].lives()

    def _step(self, i: int, slot: int) -> None:
        shared = self._shared
        if shared.episode_over_B[i]:
            shared.episode_return_B[i] = shared.episode_length_B[i] = shared.episode_frames_B[i] = 0
        result = self._envs[i].step(shared.action_B[i], shared.observation_SB[slot, i])
        shared.crashed_B[i] = result.crashed
        if result.crashed:
            shared.crash_B[i] = result.crash.encode()[:MAX_CRASH_BYTES]
        shared.reward_B[i] = result.reward
        shared.terminated_B[i] = result.terminated
        shared.episode_over_B[i] = result.episode_over
        shared.truncated_B[i] = result.truncated
        shared.frames_B[i] = result.frames
        shared.episode_return_B[i] += result.reward
        shared.episode_length_B[i] += 1
        shared.episode_frames_B[i] += result.frames
        if not result.episode_over:
            shared.lives_B[i] = self._envs[i].lives()
            return
        if result.truncated or result.crashed:
            shared.final_observation_B[i] = shared.observation_SB[slot, i]
        ended_seed = shared.episode_seed_B[i]
        self._begin(i, slot)
        shared.episode_seed_B[i] = ended_seed


def run_slice(
    channel: Channel,
    spec: RunSpec,
    shared: EnvArrays,
    groups: Sequence[range],
    protocol: str | None,
    starts: Path | None,
    with_info: bool,
    commands: socket.socket,
) -> None:
    """Entry point of a child process: step a slice until `commands` closes."""
    envs = EnvSlice(spec, shared, groups, protocol=protocol, starts=starts)
    with_info = with_info and envs.has_info
    info_sent_at = 0.0
    commands.sendall(bytes([RESET]))
    while command := commands.recv(1):
        if command[0] == RESET:
            envs.reset()
        else:
            slot, group = divmod(command[0], len(groups))
            envs.step(slot, group)
        is_due = with_info and time.monotonic() - info_sent_at >= SEND_INTERVAL_S
        if is_due and channel.has_room():  # else the parent, which waits for this step, would never read it
            info_sent_at = time.monotonic()
            channel.send(INFO, envs.take_info())
        commands.sendall(command)
