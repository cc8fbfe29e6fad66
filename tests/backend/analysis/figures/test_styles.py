from hypothesis import given
from hypothesis import strategies as st

from backend.drawing.palette import N_STYLES, distinct_styles

KEYS = st.lists(st.text(max_size=3), max_size=N_STYLES, unique=True)
WANTED = st.dictionaries(st.text(max_size=3), st.integers(-2, N_STYLES + 2))


def test_styles_follow_the_order_of_entry() -> None:
    assert distinct_styles(["b", "a", "b", "c"]) == {"b": 0, "a": 1, "c": 2}


def test_first_of_several_that_want_a_style_gets_it_and_the_others_the_first_free_one() -> None:
    wanted = {"a": 1, "c": 1, "d": 0}
    assert distinct_styles("abcd", wanted) == {"a": 1, "b": 2, "c": 3, "d": 0}
    assert distinct_styles("ab", {"a": N_STYLES, "b": -1}) == {"a": 0, "b": 1}


@given(KEYS, WANTED)
def test_styles_are_distinct_and_an_added_series_changes_no_other(
    keys: list[str], wanted: dict[str, int]
) -> None:
    styles = distinct_styles(keys, wanted)
    assert list(styles) == keys
    assert len(set(styles.values())) == len(keys)
    assert all(0 <= style < N_STYLES for style in styles.values())
    # What a view keeps of the series that stay.
    assert distinct_styles(keys[1:], styles).items() <= styles.items()
    assert styles.items() <= distinct_styles([*keys, "another"], styles).items()
