"""The emulators alone, then Callboard's methods; see `benchmarks.gpu.rows.throughput`.

The order is that of importance: what the stage's time does not suffice for is recorded as not reached.
"""

from typing import Any

from benchmarks.gpu.row_runner import Row
from benchmarks.gpu.stages.base import StageContext

GAME = "ALE/Pong-v5"
"""The game of every row: that of Clemente et al.'s Figure 2 and Babaeizadeh et al.'s Figure 3."""
N_E = (32, 64, 128, 256)
SWITCHED_N_E = 128
"""Environments with which graphs and groups are switched."""
ALE_N_E = 32
"""Environments of ale-py's own vector environment, which takes 10 s to build 128."""
GA3C_GRID = ((32, 2, 2), (64, 2, 2), (128, 2, 2), (32, 1, 1), (32, 4, 4), (16, 1, 1))
"""N_A, N_P and N_T, by which the paper's Figure 3 shows TPS. Its best are 128, 2 and 2."""
LARGE_STRIDES = (4, 1)
"""Largest and smallest stride of the paper's large network, whose PPS and GPU use are in its Table 2."""
BATCHED = 40
"""Minimum training batch of a row beside those with the paper's default; it recommends 20 to 40."""
REPLAY_CAPACITY = 20_000
"""Decisions in DQN's replay memory: more could not be sampled during a measurement."""
LEARNING_STARTS = 1_000

_FUNCTIONS = "benchmarks.gpu.rows.throughput"


def run(context: StageContext) -> None:
    """Measure all rows."""
    *emulators, ale_vector = _emulators(context)
    context.run_rows(f"{_FUNCTIONS}:emulators", emulators)
    networks = ("nips", "nature") if context.is_short else ("nature", "nips")
    n_e = (8,) if context.is_short else N_E
    rows = [_paac(context, networks[0], precision, n) for n in n_e[::-1] for precision in ("fp32", "bf16")]
    for precision in ("fp32", "bf16"):
        for switch in ({"graphs": False}, {"groups": 1}):
            n = n_e[0] if context.is_short else SWITCHED_N_E
            rows.append(_paac(context, networks[0], precision, n, **switch))
    rows += [_paac(context, networks[1], "fp32", n) for n in n_e[::-1]]
    grid = ((4, 1, 1),) if context.is_short else GA3C_GRID
    rows += [_ga3c(context, networks[1], counts) for counts in grid[:4]]
    if not context.is_short:
        rows += [_ga3c(context, "large", grid[0], first_layer_stride=stride) for stride in LARGE_STRIDES]
        rows.append(_ga3c(context, networks[1], grid[0], min_training_batch=BATCHED))
    rows += [_dqn(context, networks[0], "fp32"), _a3c(context, networks[0])]
    rows += [_paac(context, networks[1], "bf16", n) for n in n_e[::-1]]
    rows += [_ga3c(context, networks[1], counts) for counts in grid[4:]]
    rows += [_dqn(context, networks[0], "bf16")]
    rows += [
        _ga3c(context, networks[1], grid[0], graphs=False),
        _dqn(context, networks[0], "fp32", graphs=False),
    ]
    context.run_rows(f"{_FUNCTIONS}:train", rows)
    context.run_rows(f"{_FUNCTIONS}:emulators", [ale_vector])


def _times(context: StageContext) -> dict[str, float]:
    """Seconds of warm-up after the first update, and of the measurement."""
    if context.is_short:
        return {"warm_up_s": 0.2, "measured_s": 0.8}
    return {"warm_up_s": 0.4, "measured_s": 1.1}


def _emulators(context: StageContext) -> list[Row]:
    arguments = {"environment": GAME, "processes": context.cores, **_times(context)}
    n_e, ale_n_e = (8, 8) if context.is_short else (SWITCHED_N_E, ALE_N_E)
    kinds: dict[str, dict[str, Any]] = {
        f"{context.cores} processes, an environment each": {"kind": "processes"},
        f"engine's VectorEnv, {n_e} environments": {"kind": "vector_env", "n_e": n_e},
        f"ale-py's AtariVectorEnv, {ale_n_e} environments": {"kind": "ale_vector", "n_e": ale_n_e},
    }
    return [Row(name, arguments | kind, facts={"method": "emulators"}) for name, kind in kinds.items()]


def _paac(
    context: StageContext,
    network: str,
    precision: str,
    n_e: int,
    *,
    graphs: bool = True,
    groups: int = 2,
) -> Row:
    config = {"network": network, "precision": precision, "n_e": n_e, "n_w": context.cores}
    words = ["paac", network, precision, f"n_e={n_e}", *(["1 group"] if groups == 1 else [])]
    return _method(context, words, "paac", config, device=context.device, graphs=graphs, groups=groups)


def _ga3c(
    context: StageContext,
    network: str,
    counts: tuple[int, int, int],
    *,
    graphs: bool = True,
    **changed: int,
) -> Row:
    config = dict(zip(("n_actors", "n_predictors", "n_trainers"), counts, strict=True))
    words = ["ga3c", network, "/".join(map(str, counts)), *(f"{name}={n}" for name, n in changed.items())]
    settings = {"network": network, "adjustment_interval_s": 0.0, **config, **changed}
    return _method(context, words, "ga3c", settings, device=context.device, graphs=graphs)


def _dqn(context: StageContext, network: str, precision: str, *, graphs: bool = True) -> Row:
    config = {
        "network": network,
        "precision": precision,
        "replay_capacity": REPLAY_CAPACITY,
        "learning_starts_agent_steps": LEARNING_STARTS // (10 if context.is_short else 1),
        "learner_threads": context.cores if context.device == "cpu" else 1,
    }
    return _method(context, ["dqn", network, precision], "dqn", config, device=context.device, graphs=graphs)


def _a3c(context: StageContext, network: str) -> Row:
    config = {"network": network, "n_actors": context.cores}
    return _method(context, ["a3c", f"{network},", f"{context.cores} actors"], "a3c", config, device="cpu")


def _method(
    context: StageContext,
    words: list[str],
    algorithm: str,
    config: dict[str, Any],
    *,
    device: str,
    **switches: bool | int,
) -> Row:
    """A row whose name is these words, and `no graphs` if that switch is off."""
    arguments = {"algorithm": algorithm, "environment": GAME, "device": device, "config": config, **switches}
    if not switches.get("graphs", True):
        words = [*words, "no graphs"]
    return Row(
        " ".join(words),
        arguments | _times(context),
        limit_s=20.0,
        facts={"method": algorithm, **config, **switches},
    )
