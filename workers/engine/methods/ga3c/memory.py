"""What GA3C's agents, predictors and trainers share: experiences in memory, indices in queues.

Observations are written once, as the bytes the environment gives; a request states only where they are.
Separate from `agent` and `model`, which both use it: an agent's process loads no torch.
"""

import fcntl
import select
import socket
import struct
import termios
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from backend.specs.algorithms.ga3c import SEGMENTS
from workers.engine.processes.shared_memory import SharedArrays

STEPS, FRAMES, EPISODES_BEGUN = range(3)
"""Columns of `count_AC`."""
_POLL_MS = 50


class ExperienceShape(NamedTuple):
    """Sizes of the memory: A agents, each with `SEGMENTS` segments of up to t_max decisions."""

    agents: int
    t_max: int
    n_actions: int
    observation_shape: tuple[int, ...]
    observation_dtype: str


class Experiences(SharedArrays):
    """Arrays that every process sees; A agents, S segments, L = t_max + 1 places in a segment.

    The place after a segment's decisions holds the last state of a truncated episode, for the bootstrap.
    """

    observation_ASL: NDArray[Any]
    action_ASL: NDArray[np.int32]
    return_ASL: NDArray[np.float32]
    """R, discounted by the agent."""
    version_ASL: NDArray[np.int64]
    """Updates of theta before the policy of this state was computed."""
    policy_AN: NDArray[np.float32]
    """pi of the state last predicted, N actions."""
    value_A: NDArray[np.float32]
    count_AC: NDArray[np.int64]
    """Decisions, frames and episodes begun, over the run."""
    waited_s_A: NDArray[np.float64]
    """Time each agent has waited for predictors and trainers that were not paused."""
    opened_at_s: NDArray[np.float64]
    """Monotonic time, which all processes share, when predictors and trainers last began to work after a
    pause; one element."""
    live_agent: NDArray[np.int32]
    """The agent that sends live frames, or `NOT_WATCHED`; one element."""

    def __init__(self, shape: ExperienceShape) -> None:
        a, place = (shape.agents,), (shape.agents, SEGMENTS, shape.t_max + 1)
        super().__init__(
            {
                "count_AC": ((*a, 3), "int64"),
                "waited_s_A": (a, "float64"),
                "opened_at_s": ((1,), "float64"),
                "version_ASL": (place, "int64"),
                "action_ASL": (place, "int32"),
                "return_ASL": (place, "float32"),
                "policy_AN": ((*a, shape.n_actions), "float32"),
                "value_A": (a, "float32"),
                "live_agent": ((1,), "int32"),
                "observation_ASL": ((*place, *shape.observation_shape), shape.observation_dtype),
            }
        )


class AgentRequest(NamedTuple):
    """One message of an agent, in either queue: where an observation or a segment is."""

    agent: int
    generation: int
    """Which process of this agent; requests of earlier ones are ignored."""
    segment: int
    place: int
    """The state to predict; in the training queue, how many experiences the segment has."""


_REQUEST = struct.Struct("<HHBB")
REQUEST_BYTES = _REQUEST.size


class Queue:
    """A queue of requests from many processes to the threads of one: a socket in the kernel."""

    def __init__(self) -> None:
        self._out, self._in = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._out.setblocking(False)

    @property
    def entrance(self) -> socket.socket:
        """The end that agents write to."""
        return self._in

    def take(self, at_most: int) -> list[AgentRequest]:
        """All waiting requests, in order; waits briefly for the first one."""
        taken: list[AgentRequest] = []
        waiting = select.poll()
        waiting.register(self._out, select.POLLIN)
        waiting.poll(_POLL_MS)
        with suppress(BlockingIOError):
            while len(taken) < at_most:
                taken.append(AgentRequest(*_REQUEST.unpack(self._out.recv(REQUEST_BYTES))))
        return taken

    def __len__(self) -> int:
        """Number of waiting requests."""
        waiting = bytearray(4)
        fcntl.ioctl(self._out, termios.FIONREAD, waiting)
        return int.from_bytes(waiting, "little") // REQUEST_BYTES

    def close(self) -> None:
        """Close both ends; waiting requests are lost."""
        self._out.close()
        self._in.close()


def put(entrance: socket.socket, request: AgentRequest) -> None:
    """Add a request to a queue; waits while it is full."""
    entrance.sendall(_REQUEST.pack(*request))


def places(requests: Sequence[AgentRequest]) -> tuple[list[int], list[int], list[int]]:
    """Indices of the requests' agents, segments and places, for the arrays."""
    return [r.agent for r in requests], [r.segment for r in requests], [r.place for r in requests]
