"""Performance profiles and optimality gaps equal those of `rliable`, the package of the paper's authors."""

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rliable import metrics as rliable

from backend.statistics.estimates import Scores
from backend.statistics.profiles import optimality_gap, performance_profile, profiles

SCORES = arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 5)), elements=st.floats(-50, 400))
"""Runs × environments."""


@pytest.fixture(scope="module")
def score_distributions() -> Callable[[Scores, Scores], Scores]:
    """Rliable's profile. Its module imports `arch` for bootstraps alone; pandas breaks it."""
    with pytest.MonkeyPatch.context() as patch:
        bootstrap = ModuleType("arch.bootstrap")
        for name in ("IIDBootstrap", "IndependentSamplesBootstrap"):
            setattr(bootstrap, name, object)
        package = ModuleType("arch")
        package.bootstrap = bootstrap  # type: ignore[attr-defined]
        patch.setitem(sys.modules, "arch", package)
        patch.setitem(sys.modules, "arch.bootstrap", bootstrap)
        patch.delitem(sys.modules, "rliable.library", raising=False)
        library = import_module("rliable.library")
        patch.delitem(sys.modules, "rliable.library")
    distributions: Callable[[Scores, Scores], Scores] = library.score_distributions
    return distributions


@given(scores=SCORES)
def test_performance_profile_matches_rliable(
    score_distributions: Callable[[Scores, Scores], Scores], scores: Scores
) -> None:
    tau = np.linspace(-50, 400, 19)
    assert performance_profile(list(scores.T), tau) == pytest.approx(score_distributions(scores, tau))


@given(scores=SCORES, target=st.floats(1, 300))
def test_optimality_gap_matches_rliable(scores: Scores, target: float) -> None:
    wanted = rliable.aggregate_optimality_gap(scores, target)
    assert optimality_gap(list(scores.T), target) == pytest.approx(wanted, abs=1e-9)


def test_environments_weigh_the_same_whatever_their_runs() -> None:
    scores = [np.array([150.0, 50.0, 50.0, 50.0]), np.array([150.0])]
    assert performance_profile(scores, np.array([100.0])) == pytest.approx([(0.25 + 1) / 2])
    assert optimality_gap(scores) == pytest.approx((37.5 + 0) / 2)


def test_only_environments_with_every_arm_count() -> None:
    scores = {("a", "Pong"): [20.0], ("a", "Alien"): [500.0], ("b", "Pong"): [80.0, 120.0]}
    drawn = profiles(scores, ["b", "a", "c"])
    assert drawn.environments == ("Pong",)
    assert [(arm.arm, arm.n_runs, arm.optimality_gap) for arm in drawn.arms] == [
        ("b", 2, 10.0),
        ("a", 1, 80.0),
    ]
    [b, _] = drawn.arms
    assert (b.tau[0], b.tau[-1]) == (0.0, pytest.approx(126.0))
    assert b.share[0] == 1.0
    assert b.share[-1] == 0.0
    assert profiles({}, ["a"]).arms == ()
