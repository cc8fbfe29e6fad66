"""Run the papers' figures and tables at the scale minutes, one after another: `make papers`.

A study that this home has finished is skipped, and one that was interrupted continues, so that the campaign
can be stopped at any time. Each study's figures, data and settings are written as soon as it has ended.
"""

import argparse
import csv
import io
import zipfile
from datetime import datetime
from pathlib import Path
from time import sleep
from typing import Any

import httpx

from backend import __version__
from backend.specs.studies import PAPERS
from tests.support.installation import installation

_INTERVAL_S = 2.0
_LEFT_OUT = ("specs.jsonl",)
"""Files of an export that are too large for a repository."""


def main() -> None:
    """Run every definition that has the scale minutes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, default=Path.home() / ".callboard-papers")
    parser.add_argument("--output", type=Path, default=Path("docs/measurements/papers"))
    parser.add_argument("--only", nargs="*", default=[], help="ids of definitions")
    given = parser.parse_args()
    with installation(given.home, slots=2) as running:
        client = running.log_in()
        for paper in PAPERS.values():
            for definition in paper.definitions:
                if "minutes" not in definition.scales or (given.only and definition.id not in given.only):
                    continue
                study = _ended(client, definition.id, definition.items[0].id)
                _write(client, study, given.output / definition.id)
                started, ended = (datetime.fromisoformat(study[name]) for name in ("created_at", "ended_at"))
                minutes = (ended - started).total_seconds() / 60
                print(f"{definition.id}: {minutes:.1f} min, {study['runs']}", flush=True)  # noqa: T201


def _ended(client: httpx.Client, definition: str, item: str) -> dict[str, Any]:
    """The finished study of a definition, which is started unless this home has it."""
    listed = client.get("/api/v1/studies", params={"definition": definition}).raise_for_status().json()
    earlier = [item for item in listed["items"] if item["scale"] == "minutes"]
    study: dict[str, Any]
    if earlier:
        study = earlier[0]
    else:
        body = {"item": item, "scale": "minutes", "name": f"{definition}, {__version__}"}
        study = client.post("/api/v1/studies", json=body).raise_for_status().json()
    while study["state"] == "running":
        sleep(_INTERVAL_S)
        study = client.get(f"/api/v1/studies/{study['id']}").raise_for_status().json()
    return study


def _write(client: httpx.Client, study: dict[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    content = client.get(f"/api/v1/studies/{study['id']}/export").raise_for_status().content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in archive.namelist():
            file = name.partition("/")[2]
            if file not in _LEFT_OUT:
                (folder / file).write_bytes(archive.read(name))
    with (folder / "runs.csv").open() as runs:
        assert sum(1 for _ in csv.reader(runs)) == study["n_runs"] + 1


if __name__ == "__main__":
    main()
