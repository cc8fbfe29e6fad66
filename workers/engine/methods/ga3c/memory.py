"""What GA3C's agents, predictors and trainers share: experiences in memory, indices in queues.

Observations are written once, as the bytes the environment gives; a request states only where they are.
Separate from `agent` and `model`, which both use it: an agent's process loads no torch.
"""

import fcntl
import socket
import struct
import termios
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from backend.specs.algorithms.ga3c import SEGMENTS
from workers.engine.processes.shared_memory import SharedArrays

STEPS, FRAMES, EPISODES_BEGUN = range(3)
"""Columns of `count_AC`."""
PREDICTED, START, STOP = range(SEGMENTS, SEGMENTS + 3)
"""What an agent is notified of, beside the number of a segment that is free again: pi and V of its state are
computed; it starts; it stops."""
_POLL_S = 0.05


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
    """Time each agent's process has waited for predictors and trainers that were not paused."""
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
    """Which start of this agent; requests of earlier ones are ignored."""
    segment: int
    place: int
    """The state to predict; in the training queue, how many experiences the segment has."""


class AgentNotice(NamedTuple):
    """One message to an agent."""

    agent: int
    generation: int
    """As in the agent's requests."""
    event: int
    """`PREDICTED`, `START`, `STOP`, or the segment that is free again."""


_REQUEST, _NOTICE = struct.Struct("<HHBB"), struct.Struct("<HHB")
REQUEST_BYTES = _REQUEST.size
_NOTICES_BYTES = 256 * _NOTICE.size


class Queue:
    """A queue of requests from many processes to the threads of one: a socket in the kernel.

    The kernel adds what is written at once as a whole, so a stream of equal messages never breaks within one.
    """

    def __init__(self) -> None:
        self._out, self._in = socket.socketpair()
        self._out.settimeout(_POLL_S)

    @property
    def entrance(self) -> socket.socket:
        """The end that agents write to."""
        return self._in

    def take(self, at_most: int) -> list[AgentRequest]:
        """All waiting requests, in order; waits briefly for the first one."""
        try:
            taken = self._out.recv(at_most * REQUEST_BYTES)
        except TimeoutError:
            return []
        return [AgentRequest(*request) for request in _REQUEST.iter_unpack(taken)]

    def __len__(self) -> int:
        """Number of waiting requests."""
        waiting = bytearray(4)
        fcntl.ioctl(self._out, termios.FIONREAD, waiting)
        return int.from_bytes(waiting, "little") // REQUEST_BYTES

    def close(self) -> None:
        """Close both ends; waiting requests are lost."""
        self._out.close()
        self._in.close()


def put(entrance: socket.socket, *requests: AgentRequest) -> None:
    """Add requests to a queue; waits while it is full."""
    entrance.sendall(b"".join(_REQUEST.pack(*request) for request in requests))


def notify(entrance: socket.socket, *notices: AgentNotice) -> None:
    """Send these messages to the agents of one process."""
    entrance.sendall(b"".join(_NOTICE.pack(*notice) for notice in notices))


def take_notices(notices: socket.socket) -> list[AgentNotice]:
    """Wait for messages to a process's agents; none: the engine has closed the other end."""
    return [AgentNotice(*notice) for notice in _NOTICE.iter_unpack(notices.recv(_NOTICES_BYTES))]


def places(requests: Sequence[AgentRequest]) -> tuple[list[int], list[int], list[int]]:
    """Indices of the requests' agents, segments and places, for the arrays."""
    return [r.agent for r in requests], [r.segment for r in requests], [r.place for r in requests]
