"""Bounds of JSON, against what Python's parser makes of it."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from backend.http.json_bounds import _KEY, _STRING, MAX_DEPTH, MAX_KEY, MAX_VALUES, excess_of

TEXTS = st.text(st.sampled_from('ab\\"[]{},:\n\u00e9\U0001f600'), max_size=8)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(TEXTS, inner, max_size=5)),
    max_leaves=40,
)


def _size(value: Any) -> tuple[int, int]:
    """Number of values and depth."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    sizes = [_size(item) for item in inner]
    is_container = isinstance(value, dict | list)
    return 1 + sum(n for n, _ in sizes), is_container + max((depth for _, depth in sizes), default=0)


@given(VALUES, st.integers(1, 40), st.booleans(), st.sampled_from([None, 1]))
def test_as_many_values_as_allowed_are_accepted(
    value: Any, bound: int, ascii_only: bool, indent: int | None
) -> None:
    n_values, depth = _size(value)
    body = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    excess = excess_of(body, bound)
    if n_values > bound:
        assert excess is not None
    # An empty list or object counts as two.
    if 2 * n_values <= bound and depth <= MAX_DEPTH:
        assert excess is None


@given(st.text(st.sampled_from('"\\[: a'), max_size=30))
def test_no_search_for_a_string_fails_after_it_has_begun(text: str) -> None:
    """It would begin again at the next quote: the square of a body's length, for whoever sends one."""
    body = text.encode()
    quotes = [place for place, character in enumerate(text) if character == '"']
    assert all(pattern.match(body, place) for pattern in (_STRING, _KEY) for place in quotes)


def test_depth_and_names_are_bounded() -> None:
    for depth in (MAX_DEPTH, MAX_DEPTH + 1):
        assert (excess_of(b"[" * depth + b"]" * depth) is None) == (depth <= MAX_DEPTH)
    for character in ("k", "\u00e9", "\U0001f600", "\n", "\\", '"'):
        for n in (MAX_KEY, MAX_KEY + 1):
            for ascii_only in (True, False):
                body = json.dumps({"a": [{character * n: 1}]}, ensure_ascii=ascii_only).encode()
                assert (excess_of(body) is None) == (n <= MAX_KEY), (character, n)
                spaced = json.dumps([{character * n: 1}], ensure_ascii=ascii_only, separators=(",", " \n: "))
                assert (excess_of(spaced.encode()) is None) == (n <= MAX_KEY), (character, n)
    long_texts = ["x" * 500, ":" + "y" * 500, {"a": ':"' * 300, "b": "\\" * 301}]
    assert excess_of(json.dumps(long_texts).encode()) is None


def test_text_with_commas_and_brackets_counts_as_one_value() -> None:
    assert excess_of(json.dumps({"lines": [{"message": '[{"a": 1},' * 5_000}]}).encode(), 10) is None
    assert excess_of(json.dumps([1] * (MAX_VALUES + 1)).encode()) is not None


def test_other_encodings_are_refused() -> None:
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        assert excess_of(json.dumps({"a": [1] * 100_000}).encode(encoding)) == "must be encoded as UTF-8"
    for body in ('{"name": "é"}'.encode("latin-1"), b'{"name": "\xc3', b'\xff\xfe{"a": 1}'):
        assert excess_of(body) == "must be encoded as UTF-8"
    assert excess_of('{"name": "é"}'.encode()) is None
