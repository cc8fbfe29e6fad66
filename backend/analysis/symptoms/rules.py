"""The training doctor's rules: what is wrong with a run, by its own series.

Pure functions. What they say of a run depends on that run alone, and holds up to its latest points. A healthy
agent that has learned also stops to explore, and its returns hardly vary: three rules keep silent while the
latest returns are nearer to the run's best episode than to its worst.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from backend.drawing.theme import MINUS
from backend.specs.host_load import CPU_GRANTED, STARVED_PCT
from backend.specs.metrics import EXPLAINED_VARIANCE
from backend.statistics.columns import Array

RuleId = Literal["entropy_collapse", "exploding_gradient", "explained_variance", "policy_lag", "speed"]

MIN_POINTS = 20
"""Of a series with fewer points nothing is said."""
MIN_TRAINING_S = 30.0
"""Of a run that has trained less, hardly anything is said."""
_SMOOTHED = 5
"""Points whose median counts: a single outlier is no symptom."""
_LASTING = 0.1
"""Share of the run so far for which a symptom has to last."""

_EARLY = "in the first quarter of the run"

ENTROPY_FLOOR = 0.02
"""Nats: about those of a policy that takes one action 997 times of 1,000."""
NORM_FACTOR = 100.0
VALUE_FACTOR = 5.0
LAG_FACTOR, MIN_LAG = 3.0, 5.0
SPEED_FACTOR = 0.5


@dataclass(frozen=True)
class Curve:
    """A series in buckets, those without a value left out."""

    x: Array
    """Agent steps, or what the run counts."""
    y: Array
    """Mean of each; NaN where a value was not finite."""
    min: float
    max: float
    """The lowest and the highest single value, of those that are finite."""


@dataclass(frozen=True)
class Training:
    """What the rules look at."""

    curves: Mapping[str, Curve]
    """By metric."""
    returns: Curve | None
    """The metric by which the run is scored."""
    config: Mapping[str, Any]
    wall_time_s: float

    def first_of(self, *metrics: str) -> Curve | None:
        """The first of these metrics that has enough points of a run that has trained long enough."""
        if self.wall_time_s < MIN_TRAINING_S:
            return None
        known = (self.curves.get(metric) for metric in metrics)
        return next((curve for curve in known if curve is not None and len(curve.y) >= MIN_POINTS), None)

    @property
    def returns_are_poor(self) -> bool:
        """Whether the latest returns are nearer to the run's worst than to its best; False if not known."""
        if self.returns is None or len(self.returns.y) < MIN_POINTS:
            return False
        latest = self.returns.y[-max(1, len(self.returns.y) // 10) :]
        return bool(np.mean(latest) < (self.returns.min + self.returns.max) / 2)


@dataclass(frozen=True)
class Finding:
    """That a rule applies, and from where on."""

    since: int
    """Agent steps, or what the run counts."""
    text: str
    """What is seen, in a sentence."""


@dataclass(frozen=True)
class Rule:
    """One rule of the training doctor."""

    id: RuleId
    title: str
    find: Callable[[Training], Finding | None]
    advice: str
    """What helps, in a sentence."""
    settings: tuple[str, ...]
    """The settings of algorithms that help, the likeliest first."""
    source: str
    """Where it is from."""


def entropy_collapse(training: Training) -> Finding | None:
    """The policy takes nearly always the same action, and its returns are poor.

    Mnih et al. 2016, section 4: the entropy in the objective discourages premature convergence to suboptimal
    deterministic policies. Jones 2021, Debugging RL, Without the Agonizing Pain: an entropy near 0 is a
    policy that has collapsed. Entropies below 0 are those of continuous actions, of which it says nothing.
    """
    entropy = training.first_of("loss/entropy", "losses/entropy")
    if entropy is None or entropy.min < 0 or not training.returns_are_poor:
        return None
    since = _since(entropy, _smooth(entropy.y) < max(ENTROPY_FLOOR, entropy.max / 100))
    now = np.median(entropy.y[-_SMOOTHED:])
    text = (
        f"The policy takes nearly always the same action: its entropy is {now:.3f} nats. Returns are nearer "
        "to the run’s worst than to its best."
    )
    return None if since is None else Finding(since, text)


def exploding_gradient(training: Training) -> Finding | None:
    """Gradients, losses or values are not finite, or grow beyond what the rewards allow.

    Pascanu et al. 2013, On the difficulty of training recurrent neural networks: norms of gradients that
    explode. Van Hasselt et al. 2018, Deep reinforcement learning and the deadly triad: values above the
    highest possible return, the largest reward / (1 - discount), diverge. Where rewards are not clipped, that
    is not known, and values above five times the largest return do.
    """
    for metric, name in _LOST.items():
        curve = training.curves.get(metric)
        if curve is not None and (lost := np.flatnonzero(~np.isfinite(curve.y))).size:
            return Finding(int(curve.x[lost[0]]), f"The {name} became NaN or infinite.")
    value, limit = training.first_of("value/mean", "value/max_q", "losses/q_values"), _value_limit(training)
    if value is not None and limit is not None:
        bound, why = limit
        since = _since(value, np.abs(_smooth(value.y)) > bound)
        if since is not None:
            return Finding(since, f"Values are about {_latest(value)}, beyond ±{_number(bound)}: {why}.")
    norm = training.first_of("optim/grad_norm")
    if norm is None or not training.returns_are_poor:
        return None
    before = _early(norm)
    since = _since(norm, _smooth(norm.y) > NORM_FACTOR * before)
    text = f"The norm of the gradients is about {_latest(norm)}; {_EARLY} it was {_number(before)}."
    return None if since is None else Finding(since, text)


def explained_variance(training: Training) -> Finding | None:
    """The values predict the returns worse than their mean would, and the returns are poor.

    Schulman 2016, The Nuts and Bolts of Deep RL Research: explained variance = 1 - Var[R - V] / Var[R]; Jones
    2021 calls the rest the residual variance. Of returns that hardly vary, as those of an agent that has
    learned, it may be below 0 without harm.
    """
    curve = training.first_of(EXPLAINED_VARIANCE, "train/explained_variance", "losses/explained_variance")
    if curve is None or not training.returns_are_poor:
        return None
    since = _since(curve, _smooth(curve.y) < 0, lasting=0.3)
    text = (
        f"The explained variance is about {_latest(curve)}: a constant would predict the returns better than "
        "the values do."
    )
    return None if since is None else Finding(since, text)


def policy_lag(training: Training) -> Finding | None:
    """Gradients are computed on data of ever older policies.

    Babaeizadeh et al. 2017, sections 3 and 4: GA3C's updates lag behind the policy that acted, which makes
    training unstable; Nair et al. 2015, section 4, discard gradients that are too old. Jones 2021 lists the
    staleness of samples among what to watch.
    """
    lag = training.first_of("ga3c/policy_lag", "gorila/gradient_staleness")
    if lag is None:
        return None
    before = _early(lag)
    since = _since(lag, _smooth(lag.y) > max(LAG_FACTOR * before, MIN_LAG))
    text = f"What is learned from is {_latest(lag)} updates old; {_EARLY} it was {_number(before)}."
    return None if since is None else Finding(since, text)


def speed(training: Training) -> Finding | None:
    """The engine waits for cores that other programs have, or has become slow.

    Linux, Documentation/scheduler/sched-stats: the time that threads waited for a core. That a run of one
    machine keeps its speed is the premise of comparing by time: Mnih et al. 2016, section 5.1.
    """
    granted = training.curves.get(CPU_GRANTED)
    if granted is not None and np.mean(granted.y) < STARVED_PCT:
        is_low = granted.y < STARVED_PCT
        since = _since(granted, is_low, lasting=0)
        text = (
            f"Other programs kept the cores busy: this run had {np.mean(granted.y):.0f} % of the processor "
            "time that it could use. Its times and rates say little."
        )
        return Finding(int(granted.x[np.argmax(is_low)]) if since is None else since, text)
    rate, learns = (
        training.first_of("speed/agent_steps_per_s"),
        training.first_of("optim/grad_norm", "loss/td", "loss/value"),
    )
    if rate is None:
        return None
    if learns is not None:  # what fills a replay memory before is faster
        is_learning = rate.x >= learns.x[0]
        rate = replace(rate, x=rate.x[is_learning], y=rate.y[is_learning])
    if len(rate.y) < MIN_POINTS:
        return None
    before = _early(rate)
    since = _since(rate, _smooth(rate.y) < SPEED_FACTOR * before)
    text = f"Training does {_latest(rate)} agent steps/s; {_EARLY} it did {_number(before)}."
    return None if since is None else Finding(since, text)


_LOST = {
    "optim/grad_norm": "norm of the gradients",
    "value/mean": "mean value",
    "value/max_q": "mean of max Q",
    "loss/value": "value loss",
    "loss/policy": "policy loss",
    "loss/td": "TD loss",
    "losses/value_loss": "value loss",
    "losses/policy_loss": "policy loss",
    "losses/td_loss": "TD loss",
    "train/loss": "loss",
    "train/value_loss": "value loss",
}

RULES = (
    Rule(
        "entropy_collapse",
        "Entropy collapse",
        entropy_collapse,
        "Raise the entropy weight, or lower the learning rate.",
        ("beta", "learning_rate"),
        "Mnih et al. 2016, section 4; Jones 2021",
    ),
    Rule(
        "exploding_gradient",
        "Exploding gradient or value",
        exploding_gradient,
        "Lower the learning rate, or clip gradients and rewards more.",
        ("learning_rate", "max_grad_norm", "reward_clip"),
        "Pascanu et al. 2013; van Hasselt et al. 2018",
    ),
    Rule(
        "explained_variance",
        "Explained variance below zero",
        explained_variance,
        "Lower the learning rate, or raise the weight of the value loss.",
        ("learning_rate", "value_coefficient"),
        "Schulman 2016; Jones 2021",
    ),
    Rule(
        "policy_lag",
        "Policy lag growing",
        policy_lag,
        "Use fewer agents or actors, or more trainers.",
        ("n_actors", "n_trainers", "min_training_batch"),
        "Babaeizadeh et al. 2017; Nair et al. 2015",
    ),
    Rule(
        "speed",
        "Slow or starved engine",
        speed,
        "Run fewer runs or other programs on its machine, or use fewer processes.",
        ("n_w", "n_actors"),
        "Linux, sched-stats; Mnih et al. 2016, section 5.1",
    ),
)

METRICS = frozenset(
    {
        *_LOST,
        "loss/entropy",
        "losses/entropy",
        "losses/q_values",
        EXPLAINED_VARIANCE,
        "train/explained_variance",
        "losses/explained_variance",
        "ga3c/policy_lag",
        "gorila/gradient_staleness",
        CPU_GRANTED,
        "speed/agent_steps_per_s",
    }
)
"""What the rules read, besides returns."""


def _value_limit(training: Training) -> tuple[float, str] | None:
    """The largest value that is plausible, and why; None if that is not known."""
    clip, gamma = training.config.get("reward_clip"), training.config.get("gamma")
    if isinstance(clip, int | float) and isinstance(gamma, int | float) and clip > 0 and gamma < 1:
        return clip / (1 - gamma), "no return of clipped rewards is"
    returns = training.returns
    largest = 0.0 if returns is None else max(abs(returns.min), abs(returns.max))
    if returns is None or len(returns.y) < MIN_POINTS or not largest:
        return None
    return VALUE_FACTOR * largest, f"{VALUE_FACTOR:g} times the run’s largest return"


def _since(curve: Curve, is_bad: Array, lasting: float = _LASTING) -> int | None:
    """From where on all up to the latest point is bad; None unless that lasts for a share of the run."""
    good = np.flatnonzero(~is_bad)
    first = good[-1] + 1 if good.size else 0
    if first == len(is_bad) or curve.x[-1] - curve.x[first] < lasting * curve.x[-1]:
        return None
    return int(curve.x[first])


def _smooth(y: Array) -> Array:
    """The median of each point and those around it."""
    padded = np.pad(y, _SMOOTHED // 2, mode="edge")
    medians: Array = np.median(sliding_window_view(padded, _SMOOTHED), axis=-1)
    return medians


def _latest(curve: Curve) -> str:
    """The median of the latest points, as a number."""
    return _number(float(np.median(curve.y[-_SMOOTHED:])))


def _early(curve: Curve) -> float:
    """The median of the first quarter of the points."""
    return float(np.median(curve.y[: len(curve.y) // 4]))


def _number(value: float) -> str:
    """Three digits."""
    return f"{float(f'{value:.3g}'):,}".removesuffix(".0").replace("-", MINUS)
