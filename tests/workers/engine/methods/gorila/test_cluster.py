"""How a Gorila run connects to Ray."""

import os
import signal
import sys
import threading
from contextlib import suppress

import pytest

from workers.engine.methods.gorila import cluster
from workers.engine.processes.phases import listening


@pytest.mark.service
@pytest.mark.parametrize(
    ("address", "phase", "error"),
    [(None, "starting Ray", RuntimeError), ("there:1", "connecting to Ray", ConnectionError)],
)
def test_start_of_ray_is_a_phase_of_its_own(
    monkeypatch: pytest.MonkeyPatch, address: str | None, phase: str, error: type[Exception]
) -> None:
    """A Ray of its own is started again, after which what failed is said; a cluster's error is passed on."""

    def fails(address: str, **options: object) -> None:
        raise ConnectionError("no Ray in this test")

    environment = {name: value for name, value in os.environ.items() if name != cluster.ADDRESS}
    monkeypatch.setattr(os, "environ", environment | ({} if address is None else {cluster.ADDRESS: address}))
    monkeypatch.setattr("ray.init", fails)
    phases: list[str] = []
    with listening(phases.append), pytest.raises(error):
        cluster.RayCluster(0)
    assert phases == [phase]


def test_stop_is_not_lost_while_ray_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()
    starters: list[threading.Thread] = []

    def starts(address: str, **options: object) -> None:
        """As Ray does: it takes over SIGTERM where it can, and where it forks, exceptions are lost."""
        starters.append(threading.current_thread())
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, lambda *_: sys.exit())
        with suppress(BaseException):
            os.kill(os.getpid(), signal.SIGTERM)
        released.wait(5)
        raise ConnectionError("no Ray in this test")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "environ", os.environ | {cluster.ADDRESS: "there:1"})
    monkeypatch.setattr("ray.init", starts)
    monkeypatch.setattr("atexit.register", lambda _: None)
    before = signal.signal(signal.SIGTERM, stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            cluster.RayCluster(0)
        # The process ends although Ray is still starting.
        assert [thread.daemon for thread in starters] == [True]
    finally:
        released.set()
        signal.signal(signal.SIGTERM, before)
