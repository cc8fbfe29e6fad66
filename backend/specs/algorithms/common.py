"""Settings that several algorithms share; some have another default in each algorithm."""

from collections.abc import Sequence
from functools import partial
from typing import Any, get_args

from backend.specs.algorithms.memory import (
    MAX_STRIDE,
    NETWORKS,
    RANDOM_DECISIONS,
    VECTOR_NETWORKS,
    Network,
    RunFacts,
)
from backend.specs.fields import setting

PAPER_FRAMES = {"frame_maximum": "rgb"}
"""What presets as in the paper change in the settings of Atari: the maximum of two RGB frames, then grey."""
LUMINANCE_THEN = "Measured with frames combined after greyscale, not run to its end."
"""For measurements of a preset as in the paper, taken before the preset combined RGB frames."""

CROPPED_GAMES = ("ALE/Pong-v5",)
"""Games whose presets may crop the frame: the crop hides nothing there but score and walls."""


def network_setting(default: Network, *more: str) -> Any:
    """The setting `network`; `more` describes networks that only some methods support."""
    return setting(
        default,
        title="Network",
        common=True,
        group="network",
        shape=True,
        description=" ".join(
            (*(f"{name}: {network.description}." for name, network in NETWORKS.items()), *more)
        ),
    )


LARGE_NETWORK = "large: the large one of Babaeizadeh et al. 2017, with three convolutions."
FIRST_LAYER_STRIDE = setting(
    MAX_STRIDE,
    ge=1,
    le=MAX_STRIDE,
    title="First layer stride",
    group="network",
    shape=True,
    unit="pixels",
    description="Stride of the first convolution of the network large, from 4 to 1. A smaller stride costs "
    "more time.",
)


def network_conflicts(
    network: str, run: RunFacts, *, centre: bool, choices: Sequence[str] = get_args(Network)
) -> dict[str, str]:
    """Errors of a network that cannot take the environment's observations; `choices` of the setting."""
    problems = {}
    is_vector = run.observation == "vector"
    if centre and is_vector:
        problems["config.centre"] = f"{run.environment} has vector observations: only pixels are centred"
    if (network in VECTOR_NETWORKS) != is_vector:
        fitting = [name for name in choices if (name in VECTOR_NETWORKS) == is_vector]
        right = f"{'one of ' if len(fitting) > 1 else ''}{', '.join(fitting)}"
        kind = "vector" if is_vector else "pixel"
        message = f"{run.environment} has {kind} observations: {network} does not take them; use {right}"
        problems["config.network"] = message
    if run.observation_shape[:2] == (42, 42) and network != "compact":
        message = f"{network} takes observations of 84x84; only compact takes 42x42"
        problems["environment_config.observation_size"] = message
    return problems


def scaling_conflicts(*, standardise: bool, centre: bool) -> dict[str, str]:
    """Errors of two ways of scaling observations at the same time."""
    if standardise and centre:
        return {"config.centre": "standardise scales observations in another way: set one of them to false"}
    return {}


def schedule_conflicts(schedule: str, run: RunFacts) -> dict[str, str]:
    """Errors of a learning rate that is annealed to a limit that the run does not have."""
    if schedule == "linear" and run.annealing_agent_steps is None:
        return {"stop.agent_steps": "a linear learning rate schedule requires an agent-step limit"}
    return {}


GAMMA = setting(
    0.99,
    ge=0,
    le=1,
    symbol="γ",
    title="Discount",
    common=True,
    group="optimisation",
    description="Discount per agent step.",
)
LEARNING_RATE = partial(
    setting, title="Learning rate", group="optimisation", symbol="η", gt=0, le=10, live=True, common=True
)
MAX_GRAD_NORM = partial(setting, title="Gradient norm clip", group="optimisation", gt=0, le=1e6, live=True)
OPTIMIZER = partial(setting, title="Optimizer", group="optimisation")
T_MAX = partial(
    setting,
    title="Rollout length",
    group="parallelism",
    symbol="t_max",
    unit="agent steps",
    ge=1,
    le=1_000,
    common=True,
)
VALUE_COEFFICIENT = partial(setting, title="Value loss weight", group="optimisation", ge=0, le=10, live=True)
"""Settings to which each method adds its default and description: `LEARNING_RATE(0.001, description="…")`."""

LEARNING_RATE_SCHEDULE = setting(
    "constant",
    title="Learning rate schedule",
    group="optimisation",
    description="linear: annealed to 0 at the run's agent-step limit. constant: not annealed.",
)
RMSPROP_DECAY = setting(
    0.99,
    ge=0,
    lt=1,
    symbol="α",
    title="RMSProp decay",
    group="optimisation",
    description="Decay of the running mean of squared gradients.",
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
RMSPROP_INITIAL_G = setting(
    0.0,
    ge=0,
    le=1_000,
    symbol="g₀",
    title="RMSProp initial mean square",
    group="optimisation",
    description="Mean of squared gradients before the first update. No paper states it. 0: here, and in "
    "PyTorch. 1: in TensorFlow, so in the codes of PAAC's and GA3C's authors; with an epsilon of 0.1 the "
    "first steps are then 3.3 times smaller, and with a small epsilon far smaller.",
)
REWARD_CLIP = setting(
    1.0,
    ge=0,
    le=1e6,
    title="Reward clip",
    group="optimisation",
    description="Rewards are clipped to ± this value for learning; 0 disables clipping. Scores are never "
    "clipped.",
)
STANDARDISE = setting(
    False,
    title="Normalise observations",
    group="network",
    shape=True,
    description="Normalises the pixels of each observation to mean 0 and standard deviation 1, as the "
    "network compact always does. Not in the papers.",
)
CENTRE = setting(
    False,
    title="Centre observations",
    group="network",
    shape=True,
    description="Subtracts a mean image from the pixels and divides them by the standard deviation of what "
    f"is left, clipped to ±5; both are those of {RANDOM_DECISIONS:,} random decisions before training, which "
    "count as frames and training time, not as agent steps. It takes the place of the normalisation of the "
    "network compact. Not in the papers.",
)
PRECISION = setting(
    "fp32",
    title="Precision",
    group="network",
    description="bf16: the hidden layers compute in bfloat16 for learning, which is faster on GPUs and on "
    "CPUs that have it (avx512_bf16 or amx_bf16), and slower on others. Heads, loss and parameters stay in "
    "fp32.",
)
BF16_INSTRUCTIONS = ("avx512_bf16", "amx_bf16", "bf16")
"""Flags of processors that compute in bf16: two of x86, one of ARM."""


def bf16_instructions(cpuinfo: str) -> list[str]:
    """The bf16 instruction sets of a processor, given the text of `/proc/cpuinfo`."""
    flags = set(cpuinfo.split())
    return [name for name in BF16_INSTRUCTIONS if name in flags]


def lower_advice(**values: int) -> list[str]:
    """Advice to lower these settings, given with their values, except for those at 1, their minimum."""
    return [f"lower config.{name} ({value:,})" for name, value in values.items() if value > 1]


def precision_advice(precision: str) -> list[str]:
    """Advice to compute with less memory, if the precision does not do so yet."""
    return ["set config.precision to bf16"] if precision == "fp32" else []


BETA = setting(
    0.01,
    ge=0,
    le=10,
    symbol="β",
    title="Entropy weight",
    live=True,
    common=True,
    group="exploration",
    description="Entropy bonus coefficient.",
)
