"""Search a linear policy of CartPole by the cross-entropy method, and log it to Callboard."""

import argparse
from typing import Any

import gymnasium
import numpy as np

import callboard

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--population", type=int, default=16)
parser.add_argument("--elite", type=float, default=0.25)
parser.add_argument("--generations", type=int, default=20)
parser.add_argument("--seed", type=int, default=0)
options = parser.parse_args()

rng = np.random.default_rng(options.seed)
environment = gymnasium.make("CartPole-v1")
environment.reset(seed=options.seed)
mean, deviation = np.zeros(5), np.ones(5)
agent_steps = 0


def play(weights: Any) -> tuple[float, int]:
    """Play an episode with a policy; return its return and its length."""
    observation, _ = environment.reset()
    total, length, ended = 0.0, 0, False
    while not ended:
        action = int(observation @ weights[:4] + weights[4] > 0)
        observation, reward, terminated, truncated, _ = environment.step(action)
        total, length, ended = total + float(reward), length + 1, terminated or truncated
    return total, length


# In a run that Callboard has started, these settings are added to those of the run.
with callboard.init(
    algorithm="cross-entropy", environment="CartPole-v1", config=options, seed=options.seed
) as run:
    for _ in range(options.generations):
        policies = rng.normal(mean, deviation, (options.population, 5))
        returns = []
        for policy in policies:
            score, length = play(policy)
            agent_steps += length
            returns.append(score)
            run.episode(return_=score, length=length, agent_steps=agent_steps)
        best = policies[np.argsort(returns)[-max(2, round(options.elite * options.population)) :]]
        mean, deviation = best.mean(0), best.std(0) + 0.05
        run.log({"search/deviation": float(deviation.mean())}, agent_steps=agent_steps)
        if run.stop_requested:
            break
