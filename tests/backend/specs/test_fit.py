from typing import Any

import pytest

from backend.specs.fit import memory_problem, process_warning
from backend.specs.run import RunSpec, parse_run_spec

GIB = 2**30
PRESETS = "the preset 15 minutes (quarter-hour) or 2 CPU cores (two-cpu-cores) fits"
REDUCE = "reduce the numbers of processes and the replay memory"


def gorila(environment: str = "ALE/Pong-v5", **config: Any) -> RunSpec:
    request = {"algorithm": "gorila_dqn", "environment": environment, "config": config}
    return parse_run_spec(request | {"stop": {"agent_steps": 10_000_000}})


def test_run_that_needs_more_memory_than_there_is_names_the_presets_that_fit() -> None:
    needed = gorila().memory_estimate_bytes
    assert memory_problem(gorila(), needed) is None
    problem = memory_problem(gorila(), needed - 1)
    assert problem is not None
    assert problem.endswith(PRESETS)
    assert (memory_problem(gorila(), GIB) or "").endswith(REDUCE)


@pytest.mark.parametrize(
    ("config", "n"),
    [
        ({}, 131),  # 100 bundles and 31 shards
        ({"replay": "local"}, 331),  # actors, learners, shards and a replay shard for each actor
        ({"replay": "global"}, 239),
        ({"parts_per_process": 10}, 14),
    ],
)
def test_gorila_with_many_processes_per_core_is_warned_about(config: dict[str, Any], n: int) -> None:
    spec = gorila(**config)
    assert process_warning(spec, 11) is None
    warning = process_warning(spec, 2)
    if n <= 64:
        assert warning is None
    else:
        assert warning == (f"{n} processes on 2 cores start and train slowly: {PRESETS}")


def test_other_methods_and_environments_without_presets() -> None:
    a3c = {"algorithm": "a3c", "environment": "CartPole-v1", "config": {"n_actors": 64}}
    assert process_warning(parse_run_spec(a3c | {"stop": {"agent_steps": 100}}), 1) is None
    many = gorila("CartPole-v1", n_actors=100, n_learners=100, parts_per_process=1)
    assert process_warning(many, 1) == f"102 processes on one core start and train slowly: {REDUCE}"
