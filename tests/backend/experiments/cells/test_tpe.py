import math
from typing import Any

import pytest

from backend.experiments.cells import tpe
from backend.experiments.cells.sampling import configurations
from backend.experiments.cells.tpe import Told
from backend.experiments.specs.sweep import SweepSpec

pytest.importorskip("optuna")

SPACE = {
    "config.lr": {"distribution": "log_uniform", "low": 1e-5, "high": 1e-1},
    "config.n": {"distribution": "integer", "low": 1, "high": 64},
    "config.flag": {"values": [True, 1, "a", None]},
}


def spec(**changes: Any) -> SweepSpec:
    fields = {"name": "s", "run": {}, "space": SPACE, "sampler": "tpe", "n_configurations": 40}
    return SweepSpec.model_validate(fields | {"racing": None} | changes)


def score(settings: dict[str, Any]) -> float:
    """Best at a learning rate of 0.001 with the flag `a`."""
    return float(settings["config.flag"] == "a") - abs(math.log10(float(settings["config.lr"])) + 3)


def search(seed: int, n: int = 40) -> list[dict[str, Any]]:
    sweep = spec(sampler_seed=seed)
    tried = configurations(sweep)
    assert len(tried) == 10
    while len(tried) < n:
        tried.append(tpe.ask(sweep.space, [Told(known, score(known), True) for known in tried], seed))
    return tried


def test_later_configurations_score_better_than_random_ones() -> None:
    tried = search(seed=1)
    random, chosen = tried[:10], tried[-10:]
    assert sum(map(score, chosen)) / 10 > sum(map(score, random)) / 10 + 1
    for settings in tried:
        assert 1e-5 <= settings["config.lr"] <= 1e-1
        assert type(settings["config.n"]) is int
        assert settings["config.lr"] == float(f"{settings['config.lr']:.4g}")


def test_choice_follows_from_what_is_told_alone() -> None:
    assert search(seed=2, n=14) == search(seed=2, n=14)
    assert search(seed=2, n=14)[10:] != search(seed=3, n=14)[10:]


def test_configurations_that_run_or_have_no_score_are_told_too() -> None:
    sweep = spec()
    told = [Told(settings, score(settings), True) for settings in configurations(sweep)]
    first = tpe.ask(sweep.space, told, 0)
    second = tpe.ask(sweep.space, [*told, Told(first, None, False)], 0)
    assert second != first
    assert tpe.ask(sweep.space, [*told, Told(first, None, True)], 0).keys() == SPACE.keys()


def test_equal_values_of_other_types_are_other_choices() -> None:
    sweep = spec(space={"config.flag": {"values": [True, 1]}})
    told = [Told({"config.flag": flag}, float(flag is True), True) for flag in [True, 1] * 8]
    assert tpe.ask(sweep.space, told, 0)["config.flag"] is True
