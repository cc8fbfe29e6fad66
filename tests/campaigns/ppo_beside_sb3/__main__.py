"""PPO beside Stable-Baselines3's, with equal settings, on the same environments and machine.

    python -m tests.campaigns.ppo_beside_sb3 [--environment CartPole-v1] [--agent-steps 300000] [--seeds 5]

Without `--environment` both CartPole and HalfCheetah are trained. Libraries take turns, seed by seed, each
run in a process of its own. Prints, for each environment, the score of every run (the mean of the last 100
training episodes), the medians and the difference with their intervals, the exact test, and the agent steps
per second of every round with their ratio.

Stable-Baselines3 acts in Callboard's environments (`CallboardEnv`), whose observations of MuJoCo are scaled
by constants, with a network of the same layers, Adam's epsilon of 1e-8, and no clip of the value. What stays
different: the initial weights, and how minibatches are drawn.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from backend.specs.algorithms.ppo import PpoConfig
from backend.specs.events import ReportEvent
from backend.specs.run import parse_run_spec
from backend.statistics.estimates import Estimate, median, probability_of_improvement
from backend.statistics.permutation import difference, permutation_p_value

ENVIRONMENTS = ("CartPole-v1", "HalfCheetah-v5")
LIBRARIES = ("callboard", "sb3")
_LAST = 100


def callboard(environment: str, agent_steps: int, seed: int) -> dict[str, float]:
    """Train with Callboard's engine."""
    from workers.engine.nn.devices import prepare_torch
    from workers.engine.training.event_log import read_frames
    from workers.engine.training.loop import Training

    prepare_torch()
    spec = parse_run_spec(request(environment, agent_steps, seed))
    with tempfile.TemporaryDirectory() as folder:
        Training(spec, Path(folder)).run()
        log = Path(folder) / "attempts" / "1" / "events.log"
        reports = [
            event for frame, _ in read_frames(log) for event in frame if isinstance(event, ReportEvent)
        ]
    last = reports[-1]
    return {"score": last.mean_return_100 or np.nan, "agent_steps_per_s": last.agent_steps / last.wall_time_s}


def sb3(environment: str, agent_steps: int, seed: int) -> dict[str, float]:
    """Train with Stable-Baselines3."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from stable_baselines3.common.vec_env import DummyVecEnv

    from callboard_environments.env import CallboardEnv

    config = parse_run_spec(request(environment, agent_steps, seed)).config
    assert isinstance(config, PpoConfig)

    class Shared(BaseFeaturesExtractor):  # type: ignore[misc]
        """The layers that policy and value share, as Callboard's `mlp`."""

        def __init__(self, space: Any) -> None:
            super().__init__(space, 128)
            n = int(space.shape[0])
            self.layers = torch.nn.Sequential(
                torch.nn.Linear(n, 128), torch.nn.Tanh(), torch.nn.Linear(128, 128), torch.nn.Tanh()
            )

        def forward(self, observations: torch.Tensor) -> torch.Tensor:
            """Features."""
            return self.layers(observations)  # type: ignore[no-any-return]

    of_vectors = {"features_extractor_class": Shared, "net_arch": []}
    separate = {"net_arch": {"pi": [64, 64], "vf": [64, 64]}, "activation_fn": torch.nn.Tanh}
    network = separate if environment.startswith("HalfCheetah") else of_vectors
    envs = DummyVecEnv([lambda: Monitor(CallboardEnv(environment)) for _ in range(config.n_e)])
    model = PPO(
        "MlpPolicy",
        envs,
        learning_rate=config.learning_rate,
        n_steps=config.t_max,
        batch_size=config.n_e * config.t_max // config.n_minibatches,
        n_epochs=config.n_epochs,
        gamma=config.gamma,
        gae_lambda=config.gae_lambda,
        clip_range=config.clip,
        normalize_advantage=config.normalise_advantages,
        ent_coef=config.beta,
        vf_coef=config.value_coefficient,
        max_grad_norm=config.max_grad_norm,
        stats_window_size=_LAST,
        policy_kwargs=network | {"optimizer_kwargs": {"eps": 1e-8}},
        device="cpu",
        seed=seed,
    )
    began_at = time.monotonic()
    model.learn(agent_steps)
    took_s = time.monotonic() - began_at
    returns = [episode["r"] for episode in model.ep_info_buffer or ()]
    return {"score": float(np.mean(returns)), "agent_steps_per_s": model.num_timesteps / took_s}


def request(environment: str, agent_steps: int, seed: int) -> dict[str, Any]:
    """The run: the defaults of PPO in this environment, without evaluations and checkpoints on the way."""
    return {
        "algorithm": "ppo",
        "environment": environment,
        "seed": seed,
        "device": "cpu",
        "config": {"evaluation_episodes": 0, "learning_rate_schedule": "constant"},
        "stop": {"agent_steps": agent_steps},
    }


def trained(library: str, environment: str, agent_steps: int, seed: int) -> dict[str, float]:
    """A run in a process of its own."""
    command = [sys.executable, "-m", "tests.campaigns.ppo_beside_sb3", "--library", library]
    command += ["--environment", environment, "--agent-steps", str(agent_steps), "--seed", str(seed)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    """Train all, and print the tables; with `--library`, train one run and print its result as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--environment", choices=ENVIRONMENTS)
    parser.add_argument("--agent-steps", type=int, default=300_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--library", choices=LIBRARIES, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.library is not None:
        train = {"callboard": callboard, "sb3": sb3}[args.library]
        sys.stdout.write(f"\n{json.dumps(train(args.environment, args.agent_steps, args.seed))}\n")
        return
    for environment in [args.environment] if args.environment else ENVIRONMENTS:
        results: dict[str, list[dict[str, float]]] = {library: [] for library in LIBRARIES}
        print(f"\n{environment}, {args.agent_steps:,} agent steps")  # noqa: T201
        for seed in range(args.seeds):
            for library in LIBRARIES:
                result = trained(library, environment, args.agent_steps, seed)
                results[library].append(result)
                speed = f"{result['agent_steps_per_s']:,.0f} agent steps/s"
                print(f"{library:10} seed {seed}: score {result['score']:.1f}, {speed}", flush=True)  # noqa: T201
        report(results)


def report(results: dict[str, list[dict[str, float]]]) -> None:
    """Print the medians, their difference, and the ratio of the speeds."""
    scores = {library: np.array([run["score"] for run in runs]) for library, runs in results.items()}
    for library, values in scores.items():
        print(f"{library:10} median {text(median(values))}")  # noqa: T201
    ours, theirs = scores.values()
    p, better = permutation_p_value(ours, theirs), probability_of_improvement(ours, theirs)
    print(f"difference {text(difference(ours, theirs))}, P(ours > theirs) {better:.2f}, p {p:.3f}")  # noqa: T201
    ratios = [
        mine["agent_steps_per_s"] / other["agent_steps_per_s"]
        for mine, other in zip(*results.values(), strict=True)
    ]
    print(f"speed: {np.median(ratios):.2f} times ({min(ratios):.2f} to {max(ratios):.2f})")  # noqa: T201


def text(estimate: Estimate) -> str:
    """An estimate with its interval, if it has one."""
    interval = "" if estimate.low is None else f" [{estimate.low:.1f}, {estimate.high:.1f}]"
    return f"{estimate.value:.1f}{interval}"


if __name__ == "__main__":
    main()
