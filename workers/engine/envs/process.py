"""A process that steps some of a vectorised world's environments. Needs no torch.

Started as `python -m workers.engine.envs.process` with a shared memory file and a socket. One byte on the
socket is one command; the answer is the same byte when it is done. It ends when the socket closes or its
parent dies.
"""

import json
import signal
import socket
import sys

from backend.specs.run import parse_run_spec
from workers.engine.envs import evaluation_config, make_world
from workers.engine.envs.shared import NO_ACTION, Layout, SharedArrays
from workers.engine.lifeline import die_with_parent

RESET = 255
"""Command: begin new episodes everywhere, into slot 0. Any smaller byte: step into that slot."""


def main() -> None:
    """Serve commands until the socket closes."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is the engine's to handle
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    task = json.loads(sys.argv[1])
    spec = parse_run_spec(task["spec"])
    config = evaluation_config(spec.environment_config) if task["evaluation"] else spec.environment_config
    shared = SharedArrays(Layout.model_validate(task["layout"]), task["memory_fd"], create=False)
    mine = range(task["first"], task["last"])
    worlds = {i: make_world(spec.environment, config) for i in mine}
    channel = socket.socket(fileno=task["socket_fd"])
    channel.sendall(bytes([RESET]))

    def begin(i: int, slot: int) -> None:
        shared.episode_seed_B[i] = shared.seed_B[i]
        worlds[i].reset(int(shared.seed_B[i]), shared.observation_SB[slot, i])
        shared.lives_B[i] = worlds[i].lives()

    def step(i: int, slot: int) -> None:
        action = int(shared.action_B[i])
        if action == NO_ACTION:
            return
        if shared.ended_B[i]:
            shared.episode_return_B[i] = 0.0
            shared.episode_length_B[i] = 0
            shared.episode_frames_B[i] = 0
        result = worlds[i].step(action, shared.observation_SB[slot, i])
        shared.reward_B[i] = result.reward
        shared.terminal_B[i] = result.terminal
        shared.ended_B[i] = result.ended
        shared.truncated_B[i] = result.truncated
        shared.frames_B[i] = result.frames
        shared.episode_return_B[i] += result.reward
        shared.episode_length_B[i] += 1
        shared.episode_frames_B[i] += result.frames
        if result.truncated:
            shared.final_observation_B[i] = shared.observation_SB[slot, i]
        if result.ended:
            ended_seed = shared.episode_seed_B[i]
            begin(i, slot)
            shared.episode_seed_B[i] = ended_seed
        else:
            shared.lives_B[i] = worlds[i].lives()

    while command := channel.recv(1):
        slot = command[0]
        for i in mine:
            if slot == RESET:
                shared.ended_B[i] = False
                shared.episode_return_B[i] = shared.episode_length_B[i] = shared.episode_frames_B[i] = 0
                begin(i, 0)
            else:
                step(i, slot)
        channel.sendall(command)


if __name__ == "__main__":
    main()
