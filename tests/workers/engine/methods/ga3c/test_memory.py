"""What GA3C's processes share, and the queues between them."""

import os
import threading
from multiprocessing import get_context
from multiprocessing.connection import Connection

import numpy as np
import pytest

from tests.support.shared_names import named_memory
from workers.engine.methods.ga3c.memory import (
    REQUEST_BYTES,
    AgentRequest,
    Experiences,
    ExperienceShape,
    Queue,
    places,
    put,
)

SHAPE = ExperienceShape(agents=3, t_max=5, n_actions=2, observation_shape=(4, 2), observation_dtype="uint8")


def _write(experiences: Experiences, channel: Connection) -> None:
    experiences.observation_ASL[1, 2, 3] = 7
    experiences.count_AC[2] += 5
    channel.send(int(experiences.version_ASL[0, 0, 0]))


@pytest.mark.service
def test_shared_arrays_are_the_same_bytes_and_leave_no_file() -> None:
    before = named_memory(os.getpid())
    experiences = Experiences(SHAPE)
    experiences.version_ASL[0, 0, 0] = 11
    context = get_context("forkserver")
    mine, theirs = context.Pipe()
    child = context.Process(target=_write, args=(experiences, theirs))
    child.start()
    assert mine.recv() == 11
    child.join()
    assert (experiences.observation_ASL[1, 2, 3] == 7).all()
    assert experiences.observation_ASL.sum() == 7 * 8
    assert experiences.count_AC.tolist() == [[0] * 3, [0] * 3, [5] * 3]
    assert named_memory(os.getpid()) <= before


def test_shared_arrays_do_not_overlap() -> None:
    experiences = Experiences(SHAPE)
    names = [name for name in Experiences.__annotations__ if name not in ("shape",)]
    for k, name in enumerate(names, 1):
        getattr(experiences, name)[:] = k
    for k, name in enumerate(names, 1):
        assert (getattr(experiences, name) == k).all(), name


def test_queue_keeps_order_and_length() -> None:
    queue = Queue()
    asked = [AgentRequest(agent, 500 + agent, 3, 4) for agent in range(6)]
    for request in asked:
        put(queue.entrance, request)
    assert len(queue) == 6
    assert queue.take(4) == asked[:4]
    assert queue.take(100) == asked[4:]
    assert queue.take(1) == []
    assert len(queue) == 0
    queue.close()


def test_queue_loses_and_doubles_nothing_with_many_writers_and_readers() -> None:
    queue = Queue()
    taken: list[AgentRequest] = []
    done = threading.Event()

    def take() -> None:
        while not done.is_set() or len(queue):
            taken.extend(queue.take(7))

    def write(agent: int) -> None:
        for k in range(500):
            put(queue.entrance, AgentRequest(agent, k, 0, 0))

    takers = [threading.Thread(target=take, daemon=True) for _ in range(3)]
    writers = [threading.Thread(target=write, args=(agent,), daemon=True) for agent in range(4)]
    for thread in [*takers, *writers]:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in takers:
        thread.join()
    assert sorted(taken) == [AgentRequest(a, k, 0, 0) for a in range(4) for k in range(500)]
    queue.close()


def test_queue_messages_are_indices_only() -> None:
    """A state of 84×84×4 bytes costs 6 in a queue."""
    assert REQUEST_BYTES == 6
    at = places([AgentRequest(2, 9, 1, 4), AgentRequest(0, 9, 3, 0)])
    assert np.zeros((3, 4, 6))[at].shape == (2,)
    assert at == ([2, 0], [1, 3], [4, 0])
