"""Train A2C of Stable-Baselines3 with some seeds; each is a run with a tag."""

import argparse
from typing import Any

from stable_baselines3 import A2C

from callboard.sb3 import CallboardCallback

parser = argparse.ArgumentParser(description="Train A2C on CartPole, and log it to Callboard.")
parser.add_argument("--tag", required=True)
parser.add_argument("--seeds", type=int, default=5)
parser.add_argument("--agent-steps", type=int, default=50_000)
options = parser.parse_args()


class Callback(CallboardCallback):
    """Adds the tag to the settings: two versions of the code are two groups of seeds, which are compared."""

    def describe(self) -> dict[str, Any]:
        """Algorithm, environment, config and seed."""
        described = super().describe()
        return described | {"config": described["config"] | {"code": options.tag}}


for seed in range(options.seeds):
    model = A2C("MlpPolicy", "CartPole-v1", seed=seed, device="cpu")
    model.learn(options.agent_steps, callback=Callback(tags=[options.tag]))
