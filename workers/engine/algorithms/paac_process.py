"""A process that computes one share of the batch of PAAC's framework, on one thread.

Started by `ShareInProcess` as `python -m workers.engine.algorithms.paac_process`, with a channel whose first
message is a `Task`, and the engine's process id. It ends when the channel closes or its parent dies.
"""

import pickle
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any

from backend.specs.run import parse_run_spec
from workers.engine.algorithms.paac_share import Share, Task
from workers.engine.devices import prepare_torch
from workers.engine.envs import make_world
from workers.engine.lifeline import become_helper
from workers.engine.memory import SharedVectors
from workers.engine.optimizers import FlatParameters


def main() -> None:
    """Serve one share until the channel closes."""
    become_helper(int(sys.argv[2]))
    prepare_torch()
    channel = Connection(int(sys.argv[1]))
    task: Task = pickle.loads(channel.recv_bytes())  # noqa: S301  # from our own parent
    spec = parse_run_spec(task.spec)
    theta, theta_minus, *dthetas = SharedVectors(*task.memory_shape, fd=task.memory_fd).vectors()
    world = make_world(spec.environment, spec.environment_config)
    network = task.maker.network(spec, world)
    world.close()
    flat = FlatParameters(network, theta=theta, dtheta=dthetas[task.row])
    share = Share(spec, task.maker, task.environments, network, flat, theta_minus, processes=0)
    answer: Any = None
    trouble: str | None = None
    while True:
        try:
            channel.send_bytes(pickle.dumps((answer, trouble)))
            request, argument = pickle.loads(channel.recv_bytes())  # noqa: S301  # from our own parent
        except (EOFError, OSError):
            return
        try:
            answer = _answer(share, request, argument)
        except Exception:
            trouble = traceback.format_exc()


def _answer(share: Share, request: str, argument: Any) -> Any:
    match request:
        case "rollout":
            frames, watched = argument
            share.begin(frames, watched=watched)
            result = share.finish()
            result.dtheta = None
            return result
        case "state":
            return share.state()
        case "restore":
            share.restore(argument)
        case "change":
            share.change(argument)
    return None


if __name__ == "__main__":
    main()
