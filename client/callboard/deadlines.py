"""A deadline for a whole request: httpx itself has timeouts for single bytes only."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx

_WRITTEN_BYTES = 16_384


class Deadline(threading.local):
    """When the request that a thread sends has to have ended, however often bytes come."""

    at = math.inf

    @contextmanager
    def within(self, seconds: float) -> Iterator[ExitStack]:
        """Set the deadline for the block. Closing the stack that this yields removes it earlier."""
        self.at = time.monotonic() + seconds
        with ExitStack() as stack:
            stack.callback(setattr, self, "at", math.inf)
            yield stack

    def left_s(self, timeout: float | None) -> float | None:
        """What is left of a timeout.

        Raises:
            httpx.ReadTimeout: the deadline is over.
        """
        if self.at == math.inf:
            return timeout
        left_s = self.at - time.monotonic()
        if left_s <= 0:
            raise httpx.ReadTimeout("no whole answer in time")
        return left_s if timeout is None else min(timeout, left_s)

    def watch(self, client: httpx.Client) -> None:
        """Apply it to what a client reads and writes."""
        transports = [getattr(client, "_transport", None), *getattr(client, "_mounts", {}).values()]
        for transport in transports:
            pool = getattr(transport, "_pool", None)
            backend = getattr(pool, "_network_backend", None)
            if backend is not None:
                setattr(pool, "_network_backend", _Backend(backend, self))  # noqa: B010


class _Backend:
    """Opens connections of httpcore with a deadline."""

    def __init__(self, backend: Any, deadline: Deadline) -> None:
        self._backend = backend
        self._deadline = deadline

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def connect_tcp(self, *arguments: Any, timeout: float | None = None, **options: Any) -> _Stream:
        timeout = self._deadline.left_s(timeout)
        return _Stream(self._backend.connect_tcp(*arguments, timeout=timeout, **options), self._deadline)


class _Stream:
    """A connection of httpcore with a deadline."""

    def __init__(self, stream: Any, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        part: bytes = self._stream.read(max_bytes, self._deadline.left_s(timeout))
        return part

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for begin in range(0, len(buffer), _WRITTEN_BYTES):
            part = buffer[begin : begin + _WRITTEN_BYTES]
            self._stream.write(part, self._deadline.left_s(timeout))

    def start_tls(self, *arguments: Any, timeout: float | None = None, **options: Any) -> _Stream:
        timeout = self._deadline.left_s(timeout)
        return _Stream(self._stream.start_tls(*arguments, timeout=timeout, **options), self._deadline)
