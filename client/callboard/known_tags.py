"""What the tags of known libraries mean: which metric is the return, and what its steps count."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

RunUnit = Literal["agent_steps", "iterations"]
StepUnit = Literal["agent_steps", "iterations", "seconds"]

EPISODE_RETURN = "rollout/episode_return"


@dataclass(frozen=True)
class ReturnTag:
    """A metric by which a library's runs are scored."""

    pattern: str
    """Regular expression of its whole name."""
    library: str
    per_episode: bool = False
    """Whether each value is the return of one episode; else each is a mean already."""


RETURN_TAGS = (
    ReturnTag(re.escape(EPISODE_RETURN), "Callboard", per_episode=True),
    ReturnTag("charts/episodic_return", "CleanRL", per_episode=True),
    ReturnTag("rollout/ep_rew_mean", "Stable-Baselines3"),
    ReturnTag("rewards/(step|iter)", "rl_games"),
    ReturnTag("Train/mean_reward", "rsl_rl"),
    ReturnTag(r"Reward / Total reward \(mean\)", "skrl"),
    ReturnTag("Environment/Cumulative Reward", "ML-Agents"),
    ReturnTag("(ray/tune/)?env_runners/episode_(return|reward)_mean", "RLlib"),
    ReturnTag("(ray/tune/)?(sampler_results/)?episode_reward_mean", "RLlib"),
    ReturnTag("train(ing)?/returns_stat/mean", "tianshou"),
    ReturnTag("train(ing)?/(episode_)?(return|reward)", "TorchRL"),
    ReturnTag("eval/mean_reward", "Stable-Baselines3's evaluations"),
    ReturnTag("(ray/tune/)?evaluation/(env_runners/)?episode_(return|reward)_mean", "RLlib's evaluations"),
    ReturnTag("eval/mean", "PFRL's evaluations"),
    ReturnTag("(test|eval)/returns_stat/mean", "tianshou's evaluations"),
    ReturnTag("(test|eval)/(episode_)?(return|reward)", "TorchRL's evaluations"),
)
"""From the most to the least preferred one of a run."""

_PATTERNS = [(re.compile(tag.pattern), tag) for tag in RETURN_TAGS]
_WORDS = re.compile("return|reward|rew(?![a-z])|score", re.IGNORECASE)
_LESS_LIKELY = re.compile("max|min|std|loss|(?<![a-z])(time|iter)(?![a-z])", re.IGNORECASE)
_RSL_RL = "Train/mean_reward"
_UNITS: dict[str, StepUnit] = {"time": "seconds", "iter": "iterations"}


def return_metric(names: Iterable[str]) -> str | None:
    """The metric among these that is a known library's return; None if there is none."""
    candidates = [
        (rank, name)
        for name in names
        for rank, (pattern, _) in enumerate(_PATTERNS)
        if pattern.fullmatch(name)
    ]
    # rl_games writes the same returns by agent steps, iterations and seconds.
    return (
        min(candidates, key=lambda candidate: (candidate[0], candidate[1].endswith("/iter")))[1]
        if candidates
        else None
    )


def is_per_episode(metric: str) -> bool | None:
    """Whether each value of a known return is that of one episode; None if the metric is not known."""
    return next((tag.per_episode for pattern, tag in _PATTERNS if pattern.fullmatch(metric)), None)


def return_candidates(names: Iterable[str]) -> list[str]:
    """Metrics that may be a return by their names, the likeliest first."""
    candidates = [name for name in names if _WORDS.search(name)]
    return sorted(
        candidates, key=lambda name: (bool(_LESS_LIKELY.search(name)), "mean" not in name.lower(), name)
    )


def run_unit(names: Collection[str]) -> RunUnit:
    """What the steps of a run with these metrics count, as far as they show it."""
    is_rsl_rl = _RSL_RL in names and ("Train/mean_episode_length" in names or f"{_RSL_RL}/time" in names)
    return "iterations" if is_rsl_rl else "agent_steps"


def series_units(names: Collection[str], unit: RunUnit) -> dict[str, StepUnit]:
    """What the steps of each metric count.

    rl_games writes `T/step`, `T/iter` and `T/time`, rsl_rl `T` and `T/time`: the same values by agent steps
    or iterations, iterations, and seconds.

    Args:
        names: all metrics of a run.
        unit: the step unit of the run.
    """
    units: dict[str, StepUnit] = {}
    for name in names:
        stem, _, last = name.rpartition("/")
        has_other = stem in names or f"{stem}/step" in names or (last == "time" and f"{stem}/iter" in names)
        units[name] = _UNITS[last] if last in _UNITS and stem and has_other else unit
    return units
