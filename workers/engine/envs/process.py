"""A process that steps some of a vectorised world's environments. Needs no torch.

Started as `python -m workers.engine.envs.process` with a shared memory file and a socket. One byte on the
socket is one command; the answer is the same byte when it is done. It ends when the socket closes or its
parent dies.
"""

import json
import socket
import sys

from backend.specs.run import parse_run_spec
from workers.engine.envs.shared import Layout, SharedArrays
from workers.engine.envs.slice import WorldSlice
from workers.engine.lifeline import become_helper

RESET = 255
"""Command: begin new episodes everywhere, into slot 0. Any smaller byte: step into that slot."""


def main() -> None:
    """Serve commands until the socket closes."""
    task = json.loads(sys.argv[1])
    become_helper(task["parent"])
    shared = SharedArrays(Layout.model_validate(task["layout"]), task["memory_fd"], create=False)
    worlds = WorldSlice(
        parse_run_spec(task["spec"]), shared, task["first"], task["last"], evaluation=task["evaluation"]
    )
    channel = socket.socket(fileno=task["socket_fd"])
    channel.sendall(bytes([RESET]))
    while command := channel.recv(1):
        if command[0] == RESET:
            worlds.reset()
        else:
            worlds.step(command[0])
        channel.sendall(command)


if __name__ == "__main__":
    main()
