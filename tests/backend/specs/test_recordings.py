"""Turns of who made the decisions of a recorded game."""

import pytest

from backend.specs.recordings import first_turns, joined, later_turns

TURNS = [(0, 3), (1, 2), (0, 4)]


@pytest.mark.parametrize("decisions", range(11))
def test_turns_are_cut_before_and_after_a_decision(decisions: int) -> None:
    first, later = first_turns(TURNS, decisions), later_turns(TURNS, decisions)
    assert joined([*first, *later]) == TURNS
    assert sum(n for _, n in first) == min(decisions, 9)
    assert all(n > 0 for _, n in [*first, *later])
