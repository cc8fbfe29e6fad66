"""The rows of `python -m benchmarks engine`, and the goals that compare them.

Every row is measured in its own process by `benchmarks.turn`, which calls the row's function with the
environment and the row's arguments.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from backend.specs.algorithms import ALGORITHMS, Algorithm
from backend.specs.algorithms.asynchronous import MAX_ACTORS, AsynchronousConfig
from backend.specs.algorithms.ga3c import Ga3cConfig
from backend.specs.algorithms.gorila import GorilaConfig
from backend.specs.algorithms.replayed import ReplayedQConfig
from backend.specs.algorithms.synchronous import SynchronousConfig

PARTS = ("environment", "choosing", "learning")
"""Parts of a decision's time; time in none of them is the rest."""

REPLAY_CAPACITY = 20_000
"""Decisions in the replay memory: more could not be sampled during a measurement."""
LEARNING_STARTS = 1_000
"""Decisions before the first update: the papers' tens of thousands would take minutes."""


@dataclass(frozen=True, slots=True)
class RowProgress:
    """Work of a row since its last report."""

    agent_steps: int
    core_s: dict[str, float] = field(default_factory=dict)
    """Part -> seconds summed over all cores; empty if unknown."""


RowGenerator = Generator[RowProgress, None, None]
"""Trains or plays without end. The first report comes once the row learns at full speed; `close` stops it."""

Group = Literal["ceiling", "methods", "peers", "scaling"]
GROUPS: dict[Group, str] = {
    "ceiling": "the emulators alone, random play",
    "methods": "Callboard",
    "peers": "others",
    "scaling": "over environments, actors and workers",
}


@dataclass(frozen=True)
class Row:
    """One measured program."""

    id: str
    title: str
    group: Group
    function: str
    """`module:function` within this package: the environment and `arguments` -> `RowGenerator`."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    foreign: bool = False
    """Whether it needs packages that Callboard does not."""


@dataclass(frozen=True)
class Goal:
    """A row's rate as a multiple of the best of others."""

    row: str
    of: tuple[str, ...]
    beside: str
    """Description of the others."""
    least: float
    aim: float


def rows(cores: int) -> list[Row]:
    """All rows for a machine with this many cores."""
    most = min(cores, MAX_ACTORS)
    return [*_ceiling(cores), *_methods(most), *_peers(cores), *_scaling(most)]


def goals(cores: int) -> list[Goal]:
    """The ratios to reach."""
    ceiling = tuple(row.id for row in _ceiling(cores))
    sb3_a2c = ("sb3-a2c", "sb3-a2c-subprocesses")
    return [
        Goal("paac-nips", ceiling, "the ceiling", 0.48, 0.60),
        Goal("paac-nips-bf16", ceiling, "the ceiling", 0.52, 0.60),
        Goal("paac-nature", sb3_a2c, "SB3's A2C", 2.5, 3.5),
        Goal("paac-nature-bf16", sb3_a2c, "SB3's A2C", 2.5, 3.5),
        Goal("ga3c-nips", ("paac-nips",), "PAAC", 0.8, 1.0),
        Goal("a3c-nips", ceiling, "the ceiling", 0.30, 0.40),
        Goal("a3c-compact", ("plain-a3c",), "the plain A3C", 2.0, 3.0),
        Goal("dqn-nature", ("sb3-dqn",), "SB3's DQN", 1.5, 2.5),
    ]


def _ceiling(cores: int) -> list[Row]:
    vector = [
        Row(
            f"emulators-vector-{n_e}",
            f"AtariVectorEnv, {n_e} environments, {cores} threads",
            "ceiling",
            "emulators:vector",
            {"n_e": n_e, "threads": cores},
        )
        for n_e in (16, 32, 64, 128)
    ]
    scalar = Row(
        "emulators-scalar",
        f"{cores} processes of an environment each",
        "ceiling",
        "emulators:scalar",
        {"processes": cores},
    )
    return [*vector, scalar]


def _method(name: str, title: str, group: Group = "methods", **arguments: Any) -> Row:
    return Row(name, title, group, "methods:trained", arguments)


def _paac(cores: int, network: str = "nips", n_e: int = 32) -> dict[str, Any]:
    return {"algorithm": "paac", "network": network, "n_e": n_e, "n_w": cores}


def _methods(cores: int) -> list[Row]:
    rows = []
    for network in ("nips", "nature"):
        for algorithm in (known for known in ALGORITHMS.values() if known.learns):
            how, arguments = _for_cores(algorithm, cores)
            title = f"{algorithm.title} {network}, {how}"
            rows.append(_method(f"{_row_id(algorithm)}-{network}", title, **arguments | {"network": network}))
        rows.append(
            _method(
                f"paac-{network}-bf16",
                f"PAAC {network}, 32 environments, bf16",
                **_paac(cores, network),
                precision="bf16",
            )
        )
    _, dqn = _for_cores(ALGORITHMS["dqn"], cores)
    return [
        *rows,
        _method(
            "a3c-compact",
            "A3C compact LSTM, 4 actors",
            algorithm="a3c",
            preset="compact-lstm-cropped",
        ),
        _method("dqn-nature-bf16", "DQN nature in bf16", **dqn, network="nature", precision="bf16"),
    ]


def _row_id(algorithm: Algorithm) -> str:
    return algorithm.id.replace("_", "-")


def _for_cores(algorithm: Algorithm, cores: int) -> tuple[str, dict[str, Any]]:
    """How an algorithm is measured on so many cores, in words and as arguments of `methods.trained`."""
    arguments: dict[str, Any] = {"algorithm": algorithm.id}
    config = algorithm.config
    if issubclass(config, SynchronousConfig):
        return "32 environments", arguments | {"n_e": 32, "n_w": cores}
    if issubclass(config, AsynchronousConfig):
        return "one actor per core", arguments | {"n_actors": cores}
    if issubclass(config, Ga3cConfig):
        return "16 agents", arguments | {"preset": "two-cpu-cores"}
    if issubclass(config, ReplayedQConfig):  # learning starts within seconds
        arguments |= {"replay_capacity": REPLAY_CAPACITY, "learning_starts_agent_steps": LEARNING_STARTS}
    if issubclass(config, GorilaConfig):
        return "a bundle a core", arguments | {"n_actors": cores, "n_learners": cores, "replay": "bundled"}
    return "one actor", arguments


def _peers(cores: int) -> list[Row]:
    plain = [
        Row(
            f"plain-a2c-{network}-{n_e}",
            f"plain A2C over AtariVectorEnv, {network}, {n_e} environments",
            "peers",
            "plain_a2c:over_ale",
            {"network": network, "n_e": n_e, "threads": cores},
        )
        for network, n_e in (("nips", 32), ("nips", 64), ("nature", 32))
    ]
    envpool = [
        Row(
            f"envpool-a2c-{network}",
            f"the same over EnvPool, {network}, 32 environments",
            "peers",
            "plain_a2c:over_envpool",
            {"network": network, "n_e": 32, "threads": cores},
            foreign=True,
        )
        for network in ("nips", "nature")
    ]
    sb3 = [
        Row(
            "sb3-a2c" + ("-subprocesses" if subprocesses else ""),
            "Stable-Baselines3's A2C, 16 environments" + (" in subprocesses" if subprocesses else ""),
            "peers",
            "sb3:a2c",
            {"subprocesses": subprocesses},
            foreign=True,
        )
        for subprocesses in (False, True)
    ]
    return [
        *plain,
        *envpool,
        *sb3,
        Row("sb3-dqn", "Stable-Baselines3's DQN", "peers", "sb3:dqn", foreign=True),
        Row(
            "plain-a3c",
            "A3C like pytorch-a3c, compact LSTM, 4 processes",
            "peers",
            "plain_a3c:trained",
            {"processes": 4},
        ),
    ]


def _scaling(cores: int) -> list[Row]:
    fewer = [n for n in (1, 2, 4, 8, 16, 32, 64) if n <= cores]
    environments = [
        _method(f"paac-nips-e{n_e}", f"PAAC nips, {n_e} environments", "scaling", **_paac(cores, n_e=n_e))
        for n_e in (16, 64, 128)
    ]
    workers = [
        _method(f"paac-nips-w{n}", f"PAAC nips, 32 environments, {n} workers", "scaling", **_paac(n))
        for n in fewer
    ]
    actors = [
        _method(
            f"a3c-nips-n{n}",
            f"A3C nips, t_max 5, {n} actors",
            "scaling",
            algorithm="a3c",
            network="nips",
            n_actors=n,
        )
        for n in sorted({*fewer, min(2 * cores, MAX_ACTORS)})
    ]
    alone = [
        _method(
            f"{_row_id(algorithm)}-nips-n1",
            f"{algorithm.title} nips, 1 actor",
            "scaling",
            algorithm=algorithm.id,
            network="nips",
            n_actors=1,
        )
        for algorithm in ALGORITHMS.values()
        if issubclass(algorithm.config, AsynchronousConfig) and algorithm.id != "a3c"
    ]
    return [*environments, *workers, *actors, *alone]
