"""What came of a branch: returns of its continuations, and of the episode itself from that decision on."""

import zlib
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from backend.specs.branches import BranchOutcome, Outcome, Played

Floats = NDArray[np.floating[Any]]


def discounted_rewards(rewards: Floats, gamma: float, clip: float | None) -> Floats:
    """gamma^t r_t of each decision t = 0, 1, …, of rewards clipped as the agent learns from them."""
    learned = np.asarray(rewards, np.float64)
    if clip is not None:
        learned = np.clip(learned, -clip, clip)
    return learned * gamma ** np.arange(len(learned))


def discounted_return(
    rewards: Floats, n_valued: int, last_value: float | None, gamma: float, clip: float | None
) -> float:
    """Sum of gamma^t r_t over the first `n_valued` rewards, and gamma^n_valued times the value after them."""
    total = float(discounted_rewards(rewards[:n_valued], gamma, clip).sum())
    return total if last_value is None else total + gamma**n_valued * last_value


def valued_decisions(lives: Sequence[int], decision: int, *, value_is_per_life: bool) -> int:
    """How many of an episode's decisions from this one on have rewards that V predicts.

    Args:
        lives: lives left after each decision of the episode; 0 after its last.
        decision: the first of them.
        value_is_per_life: whether V predicts the rewards up to a lost life only.
    """
    n = len(lives) - decision
    if not value_is_per_life:
        return n
    # At the start nothing is recorded; the first decision loses no life.
    before = lives[max(0, decision - 1)] if lives else 0
    lost = np.flatnonzero(np.diff([before, *lives[decision:]]) < 0)
    return int(lost[0]) + 1 if len(lost) else n


def outcome_of(played: BranchOutcome, gamma: float, clip: float | None) -> Outcome:
    """Returns of what the engine has played."""
    return Outcome(
        value=played.value,
        policy=played.policy,
        continuations=[
            Played(
                true_return=float(np.sum(continuation.rewards)),
                discounted_return=discounted_return(
                    np.array(continuation.rewards),
                    continuation.n_valued,
                    continuation.last_value,
                    gamma,
                    clip,
                ),
                length_steps=len(continuation.rewards),
                end=continuation.end,
                n_valued=continuation.n_valued,
                last_value=continuation.last_value,
            )
            for continuation in played.continuations
        ],
    )


def pack_rewards(played: BranchOutcome) -> bytes:
    """The rewards of all continuations, one after the other."""
    rewards = [np.array(continuation.rewards, "<f4") for continuation in played.continuations]
    return zlib.compress(np.concatenate(rewards).tobytes())


def unpack_rewards(rewards: bytes, lengths: Sequence[int]) -> list[Floats]:
    """The rewards of each continuation, given their numbers."""
    together = np.frombuffer(zlib.decompress(rewards), "<f4")
    return list(np.split(together, np.cumsum(lengths)[:-1]))


Returns = Literal["discounted", "true"]
"""Discounted, of the rewards that the agent learns from, as V predicts them; or true and undiscounted."""
