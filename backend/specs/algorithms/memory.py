"""What an algorithm's config knows of the rest of its run, and the parts of its memory estimate.

Each config adds up the memory that its training needs (`AlgorithmConfig.training_bytes`). The constants are
measured with the pinned versions; `tests/workers/engine/test_contract_memory.py` compares the estimates
with the memory of running engines.
"""

from dataclasses import dataclass
from math import prod
from typing import Literal, NamedTuple

MIB = 2**20

ENGINE_BYTES = 465 * MIB
"""The engine server, or the engine's process where it is none of its forks, with PyTorch and an environment's
code; libraries count once for all processes."""
LEARNING_BYTES = 70 * MIB
"""What the engine's process needs in addition if it computes gradients, and compiles kernels before."""
LEARNER_FORK_SERVER_BYTES = 230 * MIB
"""The process that learners are forked from, whose memory they share, if it is no fork of the engine."""
ENV_FORK_SERVER_BYTES = 35 * MIB
"""The same for processes without PyTorch; every evaluation needs such a server."""
FORKED_SERVER_BYTES = 15 * MIB
"""The fork server, if it is a fork of the engine."""
LEARNER_PROCESS_BYTES = 16 * MIB
"""A forked process that computes gradients, without network, environments and activations."""
ENV_PROCESS_BYTES = 6 * MIB
"""A forked process that only steps environments, without these."""
Network = Literal["nips", "nature", "compact", "mlp"]
NetworkOrLarge = Literal[Network, "large"]
"""The networks of A3C, which takes GA3C's large one too."""
MAX_STRIDE = 4
"""Stride of the first convolution of the papers' networks."""


class NetworkFacts(NamedTuple):
    """What the specs know of a network, whose layers stand in `workers.engine.nn.networks`."""

    description: str
    parameter_bytes: int
    """One copy of the parameters, or of their gradient: 4 bytes for each, rounded up to MiB."""
    takes_vectors: bool = False
    """Whether it is for vector observations, not for pixels."""


NETWORKS: dict[Network, NetworkFacts] = {
    "nips": NetworkFacts("the network of Mnih et al. 2013", 3 * MIB),
    "nature": NetworkFacts("the larger network of Mnih et al. 2015", 7 * MIB),
    "compact": NetworkFacts("four small convolutions on 42×42 observations", MIB),
    "mlp": NetworkFacts("for vector observations", MIB, takes_vectors=True),
}
"""Every network that a method offers, by its name."""
VECTOR_NETWORKS = frozenset(name for name, network in NETWORKS.items() if network.takes_vectors)
NETWORK_BYTES: dict[str, int] = {name: network.parameter_bytes for name, network in NETWORKS.items()}


def _large_sides(first_layer_stride: int) -> tuple[int, int, int]:
    """Sides of the images that the convolutions of the network large compute from 84×84 pixels."""
    first = (84 - 8) // first_layer_stride + 1
    second = (first - 4) // 2 + 1
    return first, second, (second - 4) // 2 + 1


def network_bytes(network: str, first_layer_stride: int = MAX_STRIDE) -> int:
    """Memory of one copy of a network's parameters; most of those of `large` are in its last hidden layer."""
    if network != "large":
        return NETWORK_BYTES[network]
    units = 1_024 if first_layer_stride == 1 else 256
    return MIB + 4 * 64 * _large_sides(first_layer_stride)[2] ** 2 * units


def large_decision_bytes(first_layer_stride: int) -> int:
    """Activations of the network large for one decision, and as much for their gradients."""
    channels = (32, 32, 64)
    sides = _large_sides(first_layer_stride)
    return 2 * 4 * sum(n * side**2 for n, side in zip(channels, sides, strict=True))


PIXEL_DECISION_BYTES = 260 * 2**10
"""An observation as bytes and as floats, and its activations: 160 kB for `nips`, 214 kB for `nature`."""
VECTOR_DECISION_BYTES = 4 * 2**10
REPLAYED_SLOT_BYTES = 10
"""Action, reward and flags of an agent step in a replay memory."""
MAX_EVALUATION_ENVIRONMENTS = 64
"""Maximum number of episodes that an evaluation plays in parallel."""

RANDOM_DECISIONS = 12_000
"""Decisions of the random play that centres observations."""
RANDOM_ENVIRONMENTS = 8
"""Environments in which the random decisions are taken in parallel."""
KERNELS_BYTES = 44 * MIB
"""Numba, which centres observations, in a process that does not have it for another reason."""


@dataclass(frozen=True)
class RunFacts:
    """What an algorithm's config must fit, and what its memory depends on: the rest of the run."""

    environment: str
    """Id of the environment."""
    observation: Literal["pixels", "vector"]
    observation_shape: tuple[int, ...]
    """(H, W, C) bytes or (D,) numbers."""
    stacks_frames: bool
    """Whether the C channels are frames, of which a replay memory stores each once."""
    emulator_bytes: int
    """Memory of one environment, without the process that steps it."""
    longest_episode_agent_steps: int
    """Decisions of an update that ends with the episode, at most."""
    agent_steps: int | None
    """The run's limit."""
    annealing_agent_steps: int | None
    """Agent steps over which a learning rate can be annealed."""
    is_forked: bool
    """Whether the engine is a fork of the engine server, and its fork server a fork of it: all share what
    the first has loaded."""

    def fork_server_bytes(self, alone: int) -> int:
        """Memory of the fork server, which takes `alone` if it is no fork of the engine."""
        return FORKED_SERVER_BYTES if self.is_forked else alone

    @property
    def observation_bytes(self) -> int:
        """An observation as the environment gives it."""
        return prod(self.observation_shape) * (1 if self.observation == "pixels" else 4)

    @property
    def replayed_step_bytes(self) -> int:
        """One agent step in a replay memory."""
        stack = self.observation_shape[-1] if self.stacks_frames else 1
        return self.observation_bytes // stack + REPLAYED_SLOT_BYTES

    @property
    def decision_bytes(self) -> int:
        """A decision that is learned from: its observation and activations."""
        return PIXEL_DECISION_BYTES if self.observation == "pixels" else VECTOR_DECISION_BYTES
