"""The end of what a script prints, as far as it goes through `sys.stdout` and `sys.stderr`.

The streams stay what they are: while a run listens, their method `write` is one that calls the former.
"""

from __future__ import annotations

import sys
from collections import deque
from contextlib import suppress
from typing import Any

from callboard.limits import MAX_OUTPUT_CHARACTERS
from callboard.rows import clean


class Output:
    """What is printed while it listens: of what nobody has taken yet, the end."""

    def __init__(self) -> None:
        self._texts: deque[str] = deque()
        self._n_characters = 0

    def start(self) -> None:
        """Listen."""
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # of a stream of the script's own, or none
                if not isinstance(getattr(stream, "write", None), _Tee):
                    stream.write = _Tee(stream)  # type: ignore[method-assign]
        _listening.append(self)

    def stop(self) -> None:
        """Listen no longer. The last that does so leaves the streams as they were."""
        with suppress(ValueError):
            _listening.remove(self)
        if not _listening:
            for stream in (sys.stdout, sys.stderr):
                if isinstance(vars(stream).get("write") if hasattr(stream, "__dict__") else None, _Tee):
                    with suppress(Exception):
                        del stream.write

    def add(self, text: str) -> None:
        """Add what is printed. A signal handler may interrupt it and print."""
        self._texts.append(text[-MAX_OUTPUT_CHARACTERS:])
        self._n_characters += len(self._texts[-1])
        while self._n_characters > 2 * MAX_OUTPUT_CHARACTERS and len(self._texts) > 1:
            with suppress(IndexError):  # another thread has taken it
                self._n_characters -= len(self._texts.popleft())

    def take(self) -> str:
        """What was printed since the last call: its last 64 KiB."""
        texts = []
        with suppress(IndexError):
            while True:
                texts.append(self._texts.popleft())
                self._n_characters -= len(texts[-1])
        text = "".join(texts)[-MAX_OUTPUT_CHARACTERS:]
        return clean(text, MAX_OUTPUT_CHARACTERS)


_listening: list[Output] = []


class _Tee:
    """The method `write` of a stream, and of what listens to it."""

    def __init__(self, stream: Any) -> None:
        self._write = stream.write

    def __call__(self, text: Any) -> Any:
        """Write, and keep what was written."""
        written = self._write(text)
        if isinstance(text, str):
            for output in _listening:
                with suppress(Exception):
                    output.add(text)
        return written
