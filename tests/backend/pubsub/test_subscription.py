import asyncio
from contextlib import ExitStack

import pytest
import redis

from backend.db.changes import ChangeEvent
from backend.platform.principals import Role
from backend.pubsub.bus import Bus
from backend.pubsub.subscription import MAX_UNSENT, Events, Frames, Signal, Subscription
from backend.specs.states import RunState
from tests.support import asynchronous
from tests.support.rows import make_run
from tests.support.service import RunningService
from tests.support.sockets import connected, get_request, status_of
from tests.support.waiting import PATIENCE_S, until


def test_slow_stream_gets_a_reload_event_instead_of_more_events() -> None:
    async def run() -> None:
        events = Events()
        events.put(Signal.RESYNC)
        events.quiet_since = 0.0
        for n in range(MAX_UNSENT + 10):
            events.put(b"%d" % n)
        assert events.quiet_since is None
        assert await events.next(0) is Signal.RESYNC
        received = []
        while (message := await events.next(0)) is not None:
            received.append(message)
        # The events after those that were dropped, without a gap, to the last.
        assert received[-1] == b"%d" % (MAX_UNSENT + 9)
        assert len(received) < MAX_UNSENT
        for n in range(MAX_UNSENT):
            events.put(b"%d" % n)
        events.put(Signal.DISCONNECTED)
        last = [await events.next(0), await events.next(0)]
        assert last == [Signal.RESYNC, Signal.DISCONNECTED], "what the page reads anew is not kept up to date"

    asynchronous.run(run())


def test_frame_that_was_not_sent_is_replaced() -> None:
    async def run() -> bytes:
        frames = Frames()
        for n in range(3):
            frames.put(b"%d" % n)
        return await frames.next()

    assert asynchronous.run(run()) == b"2"


@pytest.mark.service
def test_pages_read_all_anew_when_a_process_has_lost_messages(redis_url: str) -> None:
    host = ChangeEvent(kind="host", id="h", parents={}, state=None, changed=[])

    async def received() -> list[bytes | Signal | None]:
        subscription, bus = Subscription(redis_url), Bus(redis_url)
        try:
            with subscription.events() as events:
                first = await events.next(PATIENCE_S)
                bus._n_lost = 1  # noqa: SLF001 - as after an outage that only this process has had
                bus.publish([host])
                while (message := await events.next(PATIENCE_S)) == host.model_dump_json().encode():
                    pass
                return [first, message]
        finally:
            await subscription.close()
            bus.close()

    assert asyncio.run(received()) == [Signal.RESYNC, Signal.RESYNC]


@pytest.mark.service
def test_heartbeat_of_a_host_is_no_change_that_pages_read_anew(redis_url: str) -> None:
    async def quiet_since(*kinds: str) -> list[float | None]:
        subscription, bus = Subscription(redis_url), Bus(redis_url)
        since = []
        try:
            with subscription.events() as events:
                assert await events.next(PATIENCE_S) is Signal.RESYNC
                for kind in kinds:
                    bus.publish([ChangeEvent(kind=kind, id="x", parents={}, state=None, changed=[])])
                    assert isinstance(await events.next(PATIENCE_S), bytes)
                    with subscription.events() as later:
                        since.append(later.quiet_since)
            return since
        finally:
            await subscription.close()
            bus.close()

    first, of_host, second = asyncio.run(quiet_since("run", "host", "run"))
    assert first is not None
    assert of_host == first
    assert second is not None
    assert second > first


def test_streams_share_one_subscription_and_are_bounded_per_user(
    sqlite_service: RunningService, redis_url: str
) -> None:
    limits = sqlite_service.app_state.limits
    make_run(sqlite_service.engine, RunState.RUNNING)
    with ExitStack() as stack, redis.Redis.from_url(redis_url) as server:
        before = len(server.client_list())
        viewer = stack.enter_context(sqlite_service.client_as(Role.VIEWER))
        headers = {"Authorization": viewer.headers["Authorization"]}
        request = get_request(sqlite_service.url, "/api/v1/events", headers)
        clients = stack.enter_context(connected(sqlite_service.url, request, n=50))
        assert {status_of(client) for client in clients} == {200}
        (another,) = stack.enter_context(connected(sqlite_service.url, request))
        assert status_of(another) == 429
        assert len(server.client_list()) - before <= 2
        with sqlite_service.client.stream("GET", "/api/v1/events") as of_another_user:
            assert of_another_user.status_code == 200
    until(lambda: limits.streams.n_taken == 0)
