"""Settings that several algorithms share to the letter."""

from typing import Any, Literal

from backend.specs.fields import setting

Network = Literal["nips", "nature", "compact", "mlp"]


def network_setting(default: Network) -> Any:
    """The network, of methods that know them all."""
    return setting(
        default,
        title="Network",
        group="network",
        shape=True,
        description="nips: Mnih 2013's; nature: Mnih 2015's, larger; compact: four small convolutions over "
        "42×42; mlp: for vector observations.",
    )


GAMMA = setting(
    0.99,
    ge=0,
    le=1,
    symbol="γ",
    title="Discount",
    group="optimisation",
    description="How much a reward one decision later is worth.",
)
LEARNING_RATE_SCHEDULE = setting(
    "constant",
    title="Learning rate schedule",
    group="optimisation",
    description="linear: annealed to 0 at the run's agent-step bound.",
)
RMSPROP_DECAY = setting(
    0.99,
    ge=0,
    lt=1,
    symbol="α",
    title="RMSProp decay",
    group="optimisation",
    description="How slowly the running mean of squared gradients forgets.",
)
RMSPROP_EPS = setting(
    0.1,
    gt=0,
    le=1,
    symbol="ε",
    title="RMSProp epsilon",
    group="optimisation",
    description="Added inside the square root that divides the gradient.",
)
REWARD_CLIP = setting(
    1.0,
    ge=0,
    le=1e6,
    title="Reward clip",
    group="optimisation",
    description="Rewards are clipped to ± this for learning; 0 leaves them whole. Scores are never clipped.",
)
STANDARDISE = setting(
    False,
    title="Standardise pictures",
    group="network",
    shape=True,
    description="Each state's pixels are brought to a mean of 0 and a deviation of 1, as compact always "
    "does. Not in the papers.",
)
PRECISION = setting(
    "fp32",
    title="Precision",
    group="network",
    description="bf16: the hidden layers of what is learned from are computed in bfloat16, quicker on GPUs "
    "and on CPUs that have it (avx512_bf16, amx); heads, loss and parameters stay in fp32.",
)
BETA = setting(
    0.01,
    ge=0,
    le=10,
    symbol="β",
    title="Entropy weight",
    live=True,
    group="exploration",
    description="How strongly an undecided policy is favoured.",
)
