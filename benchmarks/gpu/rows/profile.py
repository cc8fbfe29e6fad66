"""A profile of PAAC's updates by PyTorch's profiler."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from torch import profiler

from benchmarks.gpu.rows.learners import create_learner, spec_of, update
from workers.engine.nn.devices import prepare_torch

_WARM_UP_UPDATES = 10
_LINES = 25


def profile(
    *, environment: str, device: str, config: dict[str, Any], updates: int, path: str
) -> Iterator[dict[str, Any]]:
    """Write where the time of some updates goes to a file: operators on the CPU, kernels on the GPU."""
    prepare_torch()
    activities = [profiler.ProfilerActivity.CPU]
    if device == "cuda":
        activities.append(profiler.ProfilerActivity.CUDA)
    with closing(create_learner(spec_of("paac", environment, device, config))) as learner:
        update(learner, _WARM_UP_UPDATES)
        with profiler.profile(activities=activities) as profiled:
            update(learner, updates)
        averages = profiled.key_averages()
        keys = ["self_cpu_time_total"] + (["self_cuda_time_total"] if device == "cuda" else [])
        parts = [averages.table(sort_by=key, row_limit=_LINES, max_name_column_width=60) for key in keys]
    heading = f"{updates} updates of PAAC, {config}; times are sums over all of them\n"
    Path(path).write_text("\n".join([heading, *parts]), "utf-8")
    yield {"updates": updates}
