"""PPO: proximal policy optimisation (Schulman et al. 2017, Algorithm 1)."""

from typing import Any, Literal

from pydantic import ValidationInfo, field_validator

from backend.specs.algorithms.base import OPERATION_SOURCES, Algorithm, Preset
from backend.specs.algorithms.common import (
    BETA,
    LEARNING_RATE,
    MAX_GRAD_NORM,
    PAPER_FRAMES,
    STANDARDISE,
    T_MAX,
    VALUE_COEFFICIENT,
    scaling_conflicts,
)
from backend.specs.algorithms.memory import RunFacts
from backend.specs.algorithms.synchronous import N_E, TIME_METRICS, TIME_PANEL, SynchronousConfig
from backend.specs.constants import Source, Sources, ours
from backend.specs.fields import setting
from backend.specs.metrics import Metric, Panel

_TABLE_5, _TABLE_3, _TABLE_1 = (f"Schulman 2017, table {n}" for n in (5, 3, 1))
_SECTION_6 = "Schulman 2017, 6.1"
_CODE = "Schulman 2017, code"

_SOURCES: Sources = OPERATION_SOURCES | {
    "evaluation_episodes": ours("The paper averages training episodes; the other papers evaluate 30."),
    "network": Source("Schulman 2017, 6.4", note="That of Mnih 2016."),
    "precision": ours("fp32 is TensorFlow's default."),
    "learning_rate": Source(_TABLE_5),
    "learning_rate_schedule": Source(_TABLE_5, note="The factor α of the rate and of the clip."),
    "gamma": Source(_TABLE_5),
    "max_grad_norm": Source(_CODE),
    "reward_clip": Source(_CODE, note="The code takes the sign, which is the same for whole numbers."),
    "n_e": Source(_TABLE_5),
    "n_w": ours("The paper does not say how its actors are spread over processes."),
    "t_max": Source(_TABLE_5),
    "clip": Source(_TABLE_5),
    "gae_lambda": Source(_TABLE_5),
    "n_epochs": Source(_TABLE_5),
    "n_minibatches": Source(_TABLE_5, note="Minibatches of 32 × 8 of the 128 × 8 decisions."),
    "normalise_advantages": Source(_CODE),
    "standardise": ours("Not in the paper."),
    "value_coefficient": Source(_TABLE_5),
    "beta": Source(_TABLE_5),
}
_CONTINUOUS: dict[str, Any] = {
    "n_e": 1,
    "n_w": 1,
    "t_max": 2_048,
    "learning_rate": 0.0003,
    "learning_rate_schedule": "constant",
    "clip": 0.2,
    "n_epochs": 10,
    "n_minibatches": 32,
    "normalise_advantages": True,
    "value_coefficient": 1.0,
    "beta": 0.0,
    "reward_clip": 0.0,
}
"""The paper's for MuJoCo."""
_CONTINUOUS_SOURCES: Sources = {
    "n_e": Source(_CODE),
    "n_w": ours("As many as environments."),
    "t_max": Source(_TABLE_3),
    "learning_rate": Source(_TABLE_3),
    "learning_rate_schedule": ours("The table has no factor α, as table 5 has; the code anneals.", _TABLE_3),
    "clip": Source(_TABLE_1),
    "n_epochs": Source(_TABLE_3),
    "n_minibatches": Source(_TABLE_3, note="Minibatches of 64 of the 2,048 decisions."),
    "normalise_advantages": Source(_CODE),
    "value_coefficient": ours(
        "Irrelevant, as policy and value share no layers, but for the norm's clip.", _SECTION_6
    ),
    "beta": Source(_SECTION_6),
    "reward_clip": ours("Off: the clip is for Atari's scores."),
}


class PpoConfig(SynchronousConfig):
    """Settings of PPO. The defaults are those of the paper's table 5."""

    learning_rate: float = LEARNING_RATE(0.00025, description="Step size of Adam.")
    learning_rate_schedule: Literal["constant", "linear"] = setting(
        "linear",
        title="Learning rate schedule",
        group="optimisation",
        description="linear: the learning rate and the clip are annealed to 0 at the run's agent-step limit. "
        "constant: not annealed.",
    )
    max_grad_norm: float = MAX_GRAD_NORM(
        0.5, description="Gradients with a larger norm are scaled down to it."
    )
    n_e: int = N_E(8)
    t_max: int = T_MAX(128, le=100_000, description="Agent steps of each environment in a rollout.")
    clip: float = setting(
        0.1,
        gt=0,
        le=10,
        symbol="ε",
        title="Clip",
        live=True,
        common=True,
        group="optimisation",
        description="How far the probability of an action may move from what it was in the rollout, as a "
        "fraction, before the gradient ends.",
    )
    gae_lambda: float = setting(
        0.95,
        ge=0,
        le=1,
        symbol="λ",
        title="GAE lambda",
        group="optimisation",
        description="Weight of longer estimates of the advantage: 1 sums all rewards of the rollout, 0 takes "
        "only the next one.",
    )
    n_epochs: int = setting(
        3,
        ge=1,
        le=100,
        symbol="K",
        title="Epochs",
        common=True,
        group="optimisation",
        description="How often each rollout is learned from.",
    )
    n_minibatches: int = setting(
        4,
        ge=1,
        le=1_000,
        title="Minibatches",
        common=True,
        group="optimisation",
        description="Updates of an epoch, each from another part of the rollout. Divides the rollout length.",
    )
    normalise_advantages: bool = setting(
        True,
        title="Normalise advantages",
        group="optimisation",
        description="Scales the advantages of a minibatch to mean 0 and standard deviation 1.",
    )
    standardise: bool = STANDARDISE
    value_coefficient: float = VALUE_COEFFICIENT(
        1.0, symbol="c₁", description="Weight of the value loss (V - V_target)²."
    )
    beta: float = BETA

    @field_validator("n_minibatches")
    @classmethod
    def _divides(cls, value: int, info: ValidationInfo) -> int:
        t_max = info.data.get("t_max", value)
        if t_max % value:
            raise ValueError(f"must divide t_max ({t_max:,}), so that minibatches are equally large")
        return value

    def rollout_bytes(self, run: RunFacts) -> int:
        """Memory of a rollout's observations, and of a minibatch with its activations."""
        decisions = self.n_e * self.t_max
        minibatch = decisions // self.n_minibatches + 2 * self.n_e
        return decisions * run.observation_bytes + minibatch * run.decision_bytes

    def conflicts(self, run: RunFacts) -> dict[str, str]:
        """Errors of the framework's settings and of the scaling of observations."""
        scaling = scaling_conflicts(standardise=self.standardise, centre=self.centre)
        return super().conflicts(run) | scaling


PPO = Algorithm(
    id="ppo",
    title="PPO",
    summary="Many environments stepped in parallel; several epochs of minibatches with a clipped objective.",
    paper="Schulman et al. 2017, Proximal Policy Optimization Algorithms",
    config=PpoConfig,
    sources=_SOURCES,
    authors_code={"network": "nature", "n_epochs": 4, "value_coefficient": 0.25},
    observations=("pixels", "vector"),
    actions=("discrete", "continuous"),
    reproducibility="resumes_agree",
    metrics=TIME_METRICS
    | {
        "ppo/kl": Metric("KL divergence from the rollout's policy", "KL (nats)"),
        "ppo/clip_fraction": Metric("Clipped decisions", "Share of decisions"),
    },
    panels=(
        Panel("kl", "KL divergence from the rollout's policy", "KL (nats)", {"ppo/kl": "mean"}),
        Panel("clipped", "Clipped decisions", "Share of decisions", {"ppo/clip_fraction": "clipped"}),
        TIME_PANEL,
    ),
    presets=(
        Preset(
            id="full-frame",
            title="NIPS network, full frame, 2 CPU cores",
            description="For a small machine: the paper's constants for Atari, with one worker process per "
            "core and an evaluation every 500,000 agent steps.",
            observation="pixels",
            families=("atari",),
            config={"n_w": 2, "evaluation_interval_agent_steps": 500_000},
            stop={"agent_steps": 10_000_000},
        ),
        Preset(
            id="paper",
            title="As in the paper",
            description="The constants of the paper's table 5, for its 10 million agent steps.",
            observation="pixels",
            families=("atari",),
            environment_config=PAPER_FRAMES,
            stop={"agent_steps": 10_000_000},
            measured="Not run.",
        ),
        Preset(
            id="small-pixels",
            title="Small environment, 2 CPU cores",
            description="A small network and short rollouts; trains in minutes.",
            observation="pixels",
            actions=("discrete",),
            families=("small",),
            config={
                "network": "compact",
                "n_w": 2,
                "t_max": 32,
                "learning_rate": 0.001,
                "clip": 0.2,
                "evaluation_interval_agent_steps": 20_000,
            },
            stop={"agent_steps": 100_000},
            measured="Catch, plain, standardised, one seed: 0.87, 0.87, 1.0, 1.0 and 0.93 at 20,000, 40,000, "
            "60,000, 80,000 and 100,000 agent steps.",
        ),
        Preset(
            id="mujoco",
            title="MuJoCo, table 3",
            description="The constants of the paper's table 3, for its one million agent steps: one "
            "environment, 2,048 agent steps a rollout, 10 epochs of minibatches of 64.",
            observation="vector",
            actions=("continuous",),
            families=("mujoco",),
            config=_CONTINUOUS,
            stop={"agent_steps": 1_000_000},
            measured="HalfCheetah, one run, stopped at 200,000 agent steps: the last 100 training episodes "
            "averaged 879, the first ten −323.",
        ),
        Preset(
            id="small-vectors",
            title="Small environment, one CPU core",
            description="The defaults for vector observations: short rollouts, a constant learning rate, and "
            "advantages as they are. Normalised, they are noise once V is exact, which unlearned CartPole.",
            observation="vector",
            actions=("discrete",),
            stop={"agent_steps": 100_000},
            measured="CartPole, plain, three seeds: 500, 500 and 500 at 100,000 agent steps (half a minute).",
        ),
    ),
    vector_defaults={
        "network": "mlp",
        "learning_rate": 0.001,
        "learning_rate_schedule": "constant",
        "reward_clip": 0.0,
        "n_w": 1,
        "t_max": 32,
        "clip": 0.2,
        "n_epochs": 4,
        "normalise_advantages": False,
        "value_coefficient": 0.05,
        "beta": 0.0,
        "evaluation_interval_agent_steps": 100_000,
    },
    continuous_defaults=_CONTINUOUS,
    continuous_sources=_CONTINUOUS_SOURCES,
)
