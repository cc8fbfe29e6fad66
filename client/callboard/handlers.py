"""Errors that the script's own signal handlers raise, which pass through every log method.

Every module that calls methods of what a script logs needs it, so it imports none of them.
"""

from __future__ import annotations

import signal
from types import CodeType
from typing import Any


def pass_on(error: Exception) -> None:
    """Raise an error again that a signal handler has raised.

    A handler may run at any moment, and so inside a log method: its error is meant for the script. What the
    logged objects themselves raise is not.
    """
    trace = error.__traceback__
    codes = None
    while trace is not None:
        codes = _codes_of_handlers() if codes is None else codes
        if trace.tb_frame.f_code in codes:
            raise error
        trace = trace.tb_next


def _codes_of_handlers() -> set[CodeType]:
    """The code of the Python functions that signals call at present."""
    codes = set()
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        handler = getattr(handler, "func", handler)  # functools.partial
        for function in (handler, vars(type(handler)).get("__call__")):
            code = getattr(function, "__code__", None)
            if isinstance(code, CodeType):
                codes.add(code)
    return codes
