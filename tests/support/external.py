"""What the script of an external run sends."""

import hashlib
from typing import Any

import httpx

from tests.support.rows import external_request
from tests.support.service import created_run

SOURCE = "01JD3QZ6W9K0Y5T8H2V4B7N1XC"
"""The process that sends."""


def create(client: httpx.Client, **changes: Any) -> dict[str, Any]:
    """Create an external run."""
    return created_run(client.post("/api/v1/runs", json=external_request(**changes)))


def batch(sequence: int, values: list[float | None], first: int = 0, **changes: Any) -> dict[str, Any]:
    """A batch with one value per agent step from `first` on."""
    steps = list(range(first, first + len(values)))
    series = {"metric": "loss/policy", "agent_steps": steps, "wall_time_s": [0.5 * s for s in steps]}
    return {"source": SOURCE, "sequence": sequence, "series": [series | {"value": values} | changes]}


def episodes(sequence: int, returns: list[float], first: int = 0) -> dict[str, Any]:
    """A batch of episodes of 100 agent steps and one second."""
    rows = [
        {
            "agent_steps": 100 * (first + i + 1),
            "wall_time_s": 1.0 * (first + i + 1),
            "return": r,
            "length": 100,
        }
        for i, r in enumerate(returns)
    ]
    return {"source": SOURCE, "sequence": sequence, "episodes": rows}


def send(client: httpx.Client, run: dict[str, Any], what: str, body: Any) -> dict[str, Any]:
    """Send something that the service accepts."""
    answer = client.post(f"/api/v1/runs/{run['id']}/{what}", json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def drawn(client: httpx.Client, run: dict[str, Any], metric: str) -> dict[str, Any]:
    """The curve of a metric."""
    parameters = {"run": run["id"], "metric": metric}
    [series] = client.get("/api/v1/series", params=parameters).json()["series"]
    return dict(series)


def upload(
    client: httpx.Client, run: dict[str, Any], part: bytes, offset: int = 0, name: str = SOURCE
) -> httpx.Response:
    """Send a part of a file."""
    path = f"/api/v1/runs/{run['id']}/uploads/{name}"
    return client.put(path, params={"offset": offset}, content=part)


def checkpoint(sequence: int, content: bytes, **changes: Any) -> dict[str, Any]:
    """A request that stores an upload as a checkpoint."""
    fields = {"upload": SOURCE, "size_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    body = {"source": SOURCE, "sequence": sequence, "agent_steps": 0, "wall_time_s": 1.0}
    return body | fields | changes
