"""A process that computes one share of PAAC's batch, on one thread.

Started by `ShareInProcess` as `python -m workers.engine.algorithms.paac_process`, with the shared memory of
theta and a channel. It ends when the channel closes or its parent dies.
"""

import json
import pickle
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any

import torch

from backend.specs.algorithms.paac import PaacConfig
from backend.specs.run import parse_run_spec
from workers.engine.algorithms.paac import network as build_network
from workers.engine.algorithms.paac_share import Share, Slice
from workers.engine.devices import prepare_torch
from workers.engine.envs import make_world
from workers.engine.lifeline import become_helper
from workers.engine.memory import SharedVectors
from workers.engine.optimizers import FlatParameters


def main() -> None:
    """Serve one share until the channel closes."""
    become_helper()
    prepare_torch()
    task = json.loads(sys.argv[1])
    spec = parse_run_spec(task["spec"])
    assert isinstance(spec.config, PaacConfig)
    memory = SharedVectors(*task["memory_shape"], fd=task["memory_fd"])
    vectors = memory.vectors()
    world = make_world(spec.environment, spec.environment_config)
    network = build_network(spec, world)
    world.close()
    flat = FlatParameters(network, theta=vectors[0], dtheta=vectors[task["row"]])
    share = Share(spec, Slice(*task["slice"]), network, flat, torch.device("cpu"), processes=0)
    channel = Connection(task["channel_fd"])
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
            share.begin(watched=argument)
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
