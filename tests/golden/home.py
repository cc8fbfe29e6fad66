"""The golden home: its archives, and its runs as REST shows them."""

import csv
import hashlib
import io
import json
import math
import tarfile
from pathlib import Path
from typing import Any

import httpx

from backend.specs.algorithms import ALGORITHMS
from tests.support.waiting import Patience

DATA = Path(__file__).parent / "data"
HOST = "golden"
"""The worker host that trained the runs."""
UNFINISHED = "unfinished"
"""Name of the run whose engine was killed before its log was recorded."""

NEW_FIELDS = {"annealing_agent_steps": None}
"""Fields of specs that are newer, with their values in stored specs."""
NEW_SETTINGS: dict[str, Any] = {"rmsprop_initial_g": 0.0, "evaluation_protocol": "auto"}
"""Settings of algorithms that are newer, with the values that stored runs trained with."""

Point = tuple[int, int, float, int, float]
"""Agent steps, frames, wall time, episodes, value."""


REMOVED_SETTINGS = frozenset({"evaluation_max_frames"})
"""Settings of algorithms that exist no longer and had their default in every stored spec."""


def with_new_fields(spec: dict[str, Any]) -> dict[str, Any]:
    """A stored spec with the fields and settings that specs have now."""
    known = ALGORITHMS[spec["algorithm"]].config.model_fields
    newer = {name: value for name, value in NEW_SETTINGS.items() if name in known}
    kept = {name: value for name, value in spec["config"].items() if name not in REMOVED_SETTINGS}
    return NEW_FIELDS | spec | {"config": newer | kept}


def unpack(name: str, folder: Path) -> Path:
    """Unpack an archive of `data` into a new folder; gives the folder."""
    folder.mkdir(parents=True)
    with tarfile.open(DATA / f"{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def expected(name: str) -> Any:
    """A JSON file of `data`."""
    return json.loads((DATA / f"{name}.json").read_text("utf-8"))


_HOME = expected("home")
RUNS: dict[str, Any] = _HOME["runs"]
"""Name -> what REST answered about each run but the unfinished one; `played`: returns of two evaluations."""
UNFINISHED_LOG: dict[str, Any] = _HOME["unfinished"]
"""Points of the unfinished run's log, how much of it is recorded, and its checkpoints."""


def items(client: httpx.Client, path: str, **params: Any) -> list[dict[str, Any]]:
    """Every item of a list, the oldest first."""
    found: list[dict[str, Any]] = []
    cursor = None
    patience = Patience()
    while patience.lasts():
        answer = client.get(path, params=params | {"limit": 100} | ({"cursor": cursor} if cursor else {}))
        assert answer.status_code == 200, answer.text
        page = answer.json()
        found += page["items"]
        if (cursor := page.get("next_cursor")) is None:
            return found[::-1]


def runs_by_name(client: httpx.Client) -> dict[str, dict[str, Any]]:
    """Every run, by its name."""
    return {run["name"]: run for run in items(client, "/api/v1/runs", archived="all")}


def points(client: httpx.Client, run_id: str) -> dict[str, list[Point]]:
    """Every point of a run by "metric source", as its CSV export has them."""
    answer = client.get(f"/api/v1/runs/{run_id}/export", params={"format": "csv"})
    assert answer.status_code == 200, answer.text
    found: dict[str, list[Point]] = {}
    for row in csv.DictReader(io.StringIO(answer.text)):
        found.setdefault(f"{row['metric']} {row['source']}".strip(), []).append(
            (
                int(row["agent_steps"]),
                int(row["frames"]),
                float(row["wall_time_s"]),
                int(row["episodes"]),
                float(row["value"]),
            )
        )
    return found


def facts(client: httpx.Client, run: dict[str, Any]) -> dict[str, Any]:
    """What REST must keep answering about a run of the home; ids and times are left out."""
    path = f"/api/v1/runs/{run['id']}"
    detail = client.get(path).json()
    kept = (
        "name algorithm environment seed state state_reason queue priority group tags notes archived "
        "forked_at_agent_steps attempt agent_steps frames updates episodes wall_time_s score best_return"
    )
    return {
        **{name: detail[name] for name in kept.split()},
        "states": [change["after"] for change in detail["transitions"]],
        "attempts": [[a["number"], a["host"], a["outcome"]] for a in detail["attempts"]],
        "children": [[c["name"], c["forked_at_agent_steps"]] for c in detail["children"]],
        "series": {name: digest(its) for name, its in points(client, run["id"]).items()},
        "checkpoints": _columns(
            items(client, f"{path}/checkpoints", gone=True),
            "attempt agent_steps frames updates episodes wall_time_s file size_bytes removed",
        ),
        "evaluations": _columns(
            items(client, f"{path}/evaluations"),
            "protocol n_episodes seed agent_steps frames checkpoint returns lengths_frames mean_return state",
        ),
        "kept_episodes": [
            [*row, _trace(client, episode["id"])]
            for episode, row in _with_columns(
                items(client, f"{path}/episodes"),
                "attempt kind source agent_steps frames seed episode_return length_steps length_frames video",
            )
        ],
        "settings": _columns(items(client, f"{path}/settings"), "version changes state agent_steps refused"),
        "log": [[line["level"], line["message"]] for line in items(client, f"{path}/log")[::-1]],
    }


def digest(its: list[Point]) -> list[float]:
    """How many points, and the sum of each column."""
    return [len(its), *(sum(column) for column in zip(*its, strict=True))]


def _columns(rows: list[dict[str, Any]], names: str) -> list[list[Any]]:
    return [row for _, row in _with_columns(rows, names)]


def _with_columns(rows: list[dict[str, Any]], names: str) -> list[tuple[dict[str, Any], list[Any]]]:
    return [(row, [row[name] for name in names.split()]) for row in rows]


def _trace(client: httpx.Client, episode_id: str) -> str:
    """Digest of an episode's trace."""
    answer = client.get(f"/api/v1/episodes/{episode_id}/trace")
    assert answer.status_code == 200, answer.text
    return hashlib.sha256(json.dumps(answer.json(), sort_keys=True).encode()).hexdigest()[:16]


def assert_same(found: Any, wanted: Any, *, rtol: float = 1e-12, atol: float = 0.0, path: str = "") -> None:
    """Compare JSON values: numbers with a fraction within a tolerance, all else exactly."""
    if isinstance(wanted, dict):
        assert isinstance(found, dict), path
        assert set(found) == set(wanted), path
        for key in wanted:
            assert_same(found[key], wanted[key], rtol=rtol, atol=atol, path=f"{path}/{key}")
    elif isinstance(wanted, list):
        assert isinstance(found, list | tuple), path
        assert len(found) == len(wanted), path
        for k, (one, other) in enumerate(zip(found, wanted, strict=True)):
            assert_same(one, other, rtol=rtol, atol=atol, path=f"{path}/{k}")
    elif isinstance(wanted, float) and isinstance(found, int | float):
        assert math.isclose(found, wanted, rel_tol=rtol, abs_tol=atol), f"{path}: {found}, not {wanted}"
    else:
        assert found == wanted, path
