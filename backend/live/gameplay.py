"""Watching an agent while it trains: who watches says so, and the worker passes pictures on meanwhile.

Whoever watches a run publishes its id on `WATCH_CHANNEL` every `WATCH_INTERVAL_S`; the worker that has the
run publishes pictures on `pictures_channel` until nobody has said so for `WATCH_LAPSES_S`. A picture is the
agent step whose parameters played (u64, little-endian), then a JPEG. Redis keeps none of it.
"""

import struct

WATCH_CHANNEL = "callboard:watch"
WATCH_INTERVAL_S = 2.0
WATCH_LAPSES_S = 5.0

_AGENT_STEPS = struct.Struct("<Q")


def pictures_channel(run_id: str) -> str:
    """Where the pictures of a run are published."""
    return f"callboard:pictures:{run_id}"


def read_picture(message: bytes) -> tuple[int, bytes]:
    """Agent step and JPEG of one message."""
    return _AGENT_STEPS.unpack_from(message)[0], message[_AGENT_STEPS.size :]
