"""Bounds of JSON in requests, checked on its bytes before any object is built from them.

A byte of JSON may become a hundred bytes of objects, and some work on requests, such as comparing the names
of unknown fields, grows with the number of values or with their depth.
"""

import json
import re
from itertools import accumulate

MAX_VALUES = 20_000
"""Numbers, texts, flags, nulls, lists and objects of a request."""
MAX_DEPTH = 20
"""Of lists and objects inside each other."""
MAX_KEY = 200
"""Characters of a name in an object."""

# A string that does not end matches, too: a search that fails at a quote would start again at the next one.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.?)*+"?', re.DOTALL)
_KEY = re.compile(_STRING.pattern + rb"(\s*+:)?", re.DOTALL)
_BRACKETS = b"[]{}"
_OTHERS = bytes(set(range(256)) - set(_BRACKETS))
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def excess_of(body: bytes, max_values: int = MAX_VALUES) -> str | None:
    """What of a body in JSON exceeds a bound, as a message; None if nothing does.

    Args:
        body: the body as it was received. Whether it is JSON at all is not checked.
        max_values: how many values it may have.
    """
    if b"\0" in body[:4] or not _is_utf8(body):
        return "must be encoded as UTF-8"
    too_many = f"has more than {max_values:,} values, the maximum of a request"
    # A name and a value have four quotes. This needs a thousandth of the time of what follows.
    if body.count(b'"') - body.count(b'\\"') > 4 * max_values:
        return too_many
    structure = _STRING.sub(b"", body)
    brackets = structure.translate(None, _OTHERS)
    # A value follows each comma and each opening bracket, unless the list or object is empty.
    if structure.count(b",") + brackets.count(b"[") + brackets.count(b"{") >= max_values:
        return too_many
    if max(accumulate(map(_STEP.__getitem__, brackets)), default=0) > MAX_DEPTH:
        return f"has values that are nested more than {MAX_DEPTH} deep"
    if any(map(_is_long_key, _KEY.finditer(body))):
        return f"has a name of more than {MAX_KEY} characters"
    return None


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_long_key(match: re.Match[bytes]) -> bool:
    """Whether a string is a name of an object that is too long."""
    if match.end() - match.start() <= MAX_KEY + 2 or match[1] is None:
        return False
    try:
        return len(json.loads(match[0].rpartition(b":")[0])) > MAX_KEY
    except ValueError:
        return False  # the body is no JSON, which the endpoint will state
