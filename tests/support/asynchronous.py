"""Coroutines in tests that may share a process with a browser's."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def run(coroutine: Coroutine[object, object, T]) -> T:
    """`asyncio.run` in a thread of its own: Playwright leaves a running event loop in the tests' thread."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()
