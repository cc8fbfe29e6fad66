"""What it costs to store points of external runs."""

import time

import numpy as np
import pyarrow as pa
import pytest

from backend.external.schemas import MAX_ROWS
from tests.support.arrow import arrow_stream
from tests.support.rows import external_request
from tests.support.service import RunningService, created_run

pytestmark = [pytest.mark.service, pytest.mark.benchmark]

SOURCE = "01JD3QZ6W9K0Y5T8H2V4B7N1XC"
METRICS = [f"loss/part_{i}" for i in range(10)]
BATCHES = 60
WARM_UP = 10
MAX_CPU_S_PER_MILLION = 10.0
"""With 5 s on an idle host, a core stores 200,000 points/s; hosts of CI are half as fast."""


def test_points_in_arrow_batches_cost_little_processor_time(sqlite_service: RunningService) -> None:
    """`process_time` counts client and service, which share this process, and no other program."""
    generator = np.random.default_rng(0)
    rows = MAX_ROWS // len(METRICS)
    bodies = []
    for at in range(BATCHES):
        steps = np.repeat(np.arange(at * rows, (at + 1) * rows), len(METRICS))
        columns = {
            "metric": pa.array(METRICS * rows).dictionary_encode(),
            "agent_steps": steps,
            "wall_time_s": steps * 0.001,
            "value": generator.normal(size=MAX_ROWS),
        }
        bodies.append(arrow_stream(columns))
    run = created_run(sqlite_service.client.post("/api/v1/runs", json=external_request()))
    headers = {"Content-Type": "application/vnd.apache.arrow.stream", "Callboard-Source": SOURCE}
    for at, body in enumerate(bodies):
        if at == WARM_UP:
            began_s, cpu_s = time.perf_counter(), time.process_time()
        answer = sqlite_service.client.post(
            f"/api/v1/runs/{run['id']}/points",
            content=body,
            headers=headers | {"Callboard-Sequence": str(at + 1)},
        )
        assert answer.json()["stored"] == MAX_ROWS
    millions = (BATCHES - WARM_UP) * MAX_ROWS / 1e6
    taken_s, cpu_s = time.perf_counter() - began_s, (time.process_time() - cpu_s) / millions
    print(f"{millions * 1e6 / taken_s:,.0f} points/s; {cpu_s:.2f} CPU seconds per million")  # noqa: T201
    assert cpu_s <= MAX_CPU_S_PER_MILLION
