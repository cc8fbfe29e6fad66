"""How fast PAAC trains beside a plain A2C loop over ale-py's `AtariVectorEnv`, alternating in one run.

    python -m tests.rates [--environment ALE/Pong-v5] [--rounds 5] [--seconds 20]

Prints agent steps a second of each, round by round, then the medians and their ratio.
"""

import argparse
import statistics
import time

import torch
from ale_py.vector_env import AtariVectorEnv

from backend.specs.algorithms import ALGORITHMS
from backend.specs.run import parse_run_spec
from workers.engine.algorithms import ENGINES
from workers.engine.envs.atari import _rom_name
from workers.engine.learner import Learner
from workers.engine.losses import actor_critic_loss
from workers.engine.networks import actor_critic
from workers.engine.returns import n_step_returns

T_MAX = 5


class PlainLoop:
    """What one would write in an afternoon: one process, torch's own threads, torch's RMSprop."""

    def __init__(self, environment: str, n_e: int) -> None:
        self.envs = AtariVectorEnv(
            _rom_name(environment), num_envs=n_e, num_threads=2, reward_clipping=False, use_fire_reset=False
        )
        self.n_e = n_e
        self.network = actor_critic("nips", (84, 84, 4), self.envs.single_action_space.n)
        self.optimizer = torch.optim.RMSprop(self.network.parameters(), lr=7e-4, eps=1e-5)
        self.observation, _ = self.envs.reset()

    def run(self, seconds: float) -> float:
        """Train for a while; agent steps a second."""
        steps, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            logits, values, actions, rewards, dones = [], [], [], [], []
            for _ in range(T_MAX):
                pixels = torch.from_numpy(self.observation).permute(0, 2, 3, 1).contiguous()
                z, v = self.network(pixels)
                a = torch.distributions.Categorical(logits=z.detach()).sample()
                self.observation, reward, terminated, truncated, _ = self.envs.step(a.numpy())
                logits.append(z)
                values.append(v)
                actions.append(a)
                rewards.append(torch.as_tensor(reward, dtype=torch.float32).clamp(-1, 1))
                dones.append(torch.as_tensor(terminated | truncated))
            with torch.no_grad():
                pixels = torch.from_numpy(self.observation).permute(0, 2, 3, 1).contiguous()
                _, bootstrap = self.network(pixels)
            R = n_step_returns(torch.stack(rewards), torch.stack(dones), bootstrap, 0.99)
            loss = actor_critic_loss(
                torch.cat(logits),
                torch.cat(values),
                torch.cat(actions),
                R.reshape(-1),
                beta=0.01,
                value_coefficient=0.5,
            )
            self.optimizer.zero_grad()
            loss.total.backward()
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), 0.5)
            self.optimizer.step()
            steps += T_MAX * self.n_e
        return steps / (time.perf_counter() - began)


def run_paac(learner: Learner, seconds: float) -> float:
    """Train for a while; agent steps a second."""
    steps, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        steps += learner.advance(0.0, watched=False).agent_steps
    return steps / (time.perf_counter() - began)


def main() -> None:
    """Alternate and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--environment", default="ALE/Pong-v5")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=20.0)
    args = parser.parse_args()
    preset = ALGORITHMS["paac"].presets[0]
    spec = parse_run_spec(
        {
            "algorithm": "paac",
            "environment": args.environment,
            "config": preset.config,
            "stop": preset.stop,
        }
    )
    plain = {n_e: PlainLoop(args.environment, n_e) for n_e in (32, 64)}
    threads = torch.get_num_threads()
    found: dict[str, list[float]] = {}
    for k in range(args.rounds):
        for n_e, loop in plain.items():
            torch.set_num_threads(threads)
            found.setdefault(f"plain A2C, {n_e} environments", []).append(loop.run(args.seconds))
        torch.set_num_threads(1)
        learner = ENGINES["paac"].learner(spec)
        run_paac(learner, 2.0)
        found.setdefault("PAAC, two CPU cores", []).append(run_paac(learner, args.seconds))
        learner.close()
        print(f"round {k + 1}:", ", ".join(f"{name} {rates[-1]:,.0f}" for name, rates in found.items()))  # noqa: T201
    medians = {name: statistics.median(rates) for name, rates in found.items()}
    best_plain = max(rate for name, rate in medians.items() if name.startswith("plain"))
    for name, rate in medians.items():
        print(f"median: {name} {rate:,.0f} agent steps/s")  # noqa: T201
    print(f"PAAC is {medians['PAAC, two CPU cores'] / best_plain:.2f} times the best plain loop")  # noqa: T201


if __name__ == "__main__":
    main()
