"""How a run ends that has no GPU memory left. The errors are torch's own, raised without a GPU."""

from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch

from backend.specs.algorithms import ALGORITHMS
from backend.specs.events import EndedEvent
from backend.specs.run import RunSpec, parse_run_spec
from tests.workers.engine.training.training_runs import cartpole, only, train
from workers.engine.methods.paac.learner import PaacLearner
from workers.engine.training.gpu_memory import out_of_memory_reason

TORCH = "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79.11 GiB"
GIB = 2**30


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have torch report no memory of a GPU, on a machine with one too."""

    def fail() -> NoReturn:
        raise RuntimeError("CUDA error: out of memory")

    monkeypatch.setattr(torch.cuda, "mem_get_info", fail)


def _raise(*_: Any, **__: Any) -> NoReturn:
    raise torch.OutOfMemoryError(TORCH)


def _spec(algorithm: str, config: dict[str, Any], environment: str = "ALE/Pong-v5") -> RunSpec:
    request = {"algorithm": algorithm, "environment": environment, "config": config}
    return parse_run_spec(request | {"stop": {"agent_steps": 1000}})


def _gpu(monkeypatch: pytest.MonkeyPatch, *, free: int, total: int, own: int) -> None:
    """Have torch report this memory in GiB of a GPU."""
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (free * GIB, total * GIB))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: own * GIB)


def test_learner_without_gpu_memory_fails_the_run_with_what_to_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PaacLearner, "advance", _raise)
    [ended] = only(EndedEvent, train(cartpole({"agent_steps": 40}, n_w=1, n_e=512), tmp_path))
    assert ended.state == "failed"
    reason = "out of memory on the GPU: lower config.n_e (512) or set config.precision to bf16"
    assert ended.reason == reason
    assert TORCH in ended.traceback


def test_start_without_gpu_memory_fails_the_run_with_what_to_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.nn.Module, "to", _raise)
    [ended] = only(EndedEvent, train(cartpole({"agent_steps": 40}, n_w=1), tmp_path))
    assert (ended.state, ended.reason.partition(":")[0]) == ("failed", "out of memory on the GPU")


@pytest.mark.service
def test_ga3c_thread_without_gpu_memory_fails_the_run_with_what_to_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.engine.methods.ga3c.model.to_device", _raise)
    config = {"n_actors": 2, "n_predictors": 1, "n_trainers": 1, "evaluation_episodes": 0}
    [ended] = only(EndedEvent, train(_spec("ga3c", config, "CartPole-v1"), tmp_path))
    assert ended.state == "failed"
    assert ended.reason == (
        "out of memory on the GPU: lower config.n_actors (2) or lower config.min_training_batch (40)"
    )


@pytest.mark.parametrize(
    ("algorithm", "config", "advice"),
    [
        ("paac", {"precision": "bf16"}, "lower config.n_e (32)"),
        ("paac", {"n_e": 1}, "set config.precision to bf16"),
        (
            "paac_q",
            {"precision": "bf16", "n_e": 1},
            "use a GPU with more memory or set device to cpu",
        ),
        (
            "ga3c",
            {},
            "lower config.n_trainers (2), lower config.n_predictors (2) or lower config.n_actors (32)",
        ),
        (
            "ga3c",
            {"network": "large", "first_layer_stride": 1, "min_training_batch": 40},
            "lower config.n_trainers (2), lower config.n_predictors (2), lower config.n_actors (32), "
            "lower config.min_training_batch (40) or raise config.first_layer_stride (1)",
        ),
        ("dqn", {"batch_size": 4096}, "lower config.batch_size (4,096) or set config.precision to bf16"),
    ],
)
def test_advice_names_the_settings_that_can_be_changed(
    algorithm: str, config: dict[str, Any], advice: str
) -> None:
    reason = out_of_memory_reason(torch.OutOfMemoryError(TORCH), _spec(algorithm, config))
    assert reason == f"out of memory on the GPU: {advice}"


@pytest.mark.parametrize("algorithm", [a for a in ALGORITHMS.values() if "cuda" in a.devices])
def test_every_algorithm_for_gpus_has_advice(algorithm: Any) -> None:
    assert _spec(algorithm.id, {}).config.gpu_memory_advice()


def test_reason_states_the_memory_of_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    spec, error = _spec("paac", {"precision": "bf16"}), torch.OutOfMemoryError(TORCH)
    _gpu(monkeypatch, free=1, total=80, own=70)
    assert out_of_memory_reason(error, spec) == (
        "out of memory on the GPU of 80.0 GiB, of which this run has 70.0, other processes and CUDA itself "
        "have 9.0, and 1.0 are free: lower config.n_e (32)"
    )
    _gpu(monkeypatch, free=1, total=80, own=10)
    assert str(out_of_memory_reason(error, spec)).endswith(
        "have 69.0, and 1.0 are free: end other processes on this GPU or lower config.n_e (32)"
    )


@pytest.mark.parametrize("text", ["CUDA error: out of memory", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED"])
def test_errors_of_libraries_count_too(text: str) -> None:
    assert out_of_memory_reason(RuntimeError(text), _spec("paac", {})) is not None


def test_error_that_follows_from_it_counts_and_others_do_not() -> None:
    spec = _spec("paac", {})
    with pytest.raises(RuntimeError, match="during capture") as caught:
        _fail_to_capture()
    assert out_of_memory_reason(caught.value, spec) is not None
    assert out_of_memory_reason(RuntimeError("shape mismatch"), spec) is None
    assert out_of_memory_reason(ValueError("CUDA error: out of memory"), spec) is None


def _fail_to_capture() -> NoReturn:
    try:
        _raise()
    finally:
        raise RuntimeError("operation failed due to a previous error during capture")
