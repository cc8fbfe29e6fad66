"""Generator of the golden home: `python -m tests.golden.generate [ARCHIVE]`, run once for a release.

It trains a small run of each algorithm on CartPole, with the engine in this process, and records them in a
new home: each algorithm's checkpoint and event log, and one database. The archive is committed; later
versions must read, export and resume what it holds. Until there is one, the tests generate the home.

To keep the archive small, most numbers of a large vector are stored as 0 and the others with few digits: that
changes what an agent does, not how its checkpoint is laid out.
"""

import json
import lzma
import shutil
import sqlite3
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from typer.testing import CliRunner

from backend.specs.algorithms import ALGORITHMS
from backend.specs.events import AnyEvent
from backend.specs.run import RunSpec, parse_run_spec
from callboard_cli.main import app
from workers.engine.nn.devices import prepare_torch
from workers.engine.training import checkpoint
from workers.engine.training.event_log import read_frames
from workers.engine.training.loop import Training

ARCHIVE = Path(__file__).parent / "home.tar.xz"
MAX_ARCHIVE_BYTES = 200_000
LARGE = 1_000
"""Numbers in a vector that is thinned."""
KEPT_EVERY = 16
MANTISSA_BITS = 3

SMALL: dict[str, Any] = {
    "n_actors": 2,
    "n_e": 4,
    "n_w": 1,
    "n_learners": 1,
    "n_shards": 1,
    "replay_capacity": 200,
    "learning_starts_agent_steps": 100,
    "target_update_frames": 500,
    "target_update_updates": 20,
    "exploration_anneal_frames": 1_000,
    "exploration_anneal_updates": 100,
    "exploration_anneal_agent_steps": 400,
}
"""Settings of a small run, for the algorithms that have them; others keep their defaults."""


def config_of(algorithm: str) -> dict[str, Any]:
    """The config of an algorithm's run."""
    fields = ALGORITHMS[algorithm].config.model_fields
    config = {name: value for name, value in SMALL.items() if name in fields}
    if "n_learners" in fields:  # bundled: as many actors as learners
        config["n_actors"] = config["n_learners"]
    return config


def generate(home: Path) -> dict[str, str]:
    """Train a run of each algorithm and record it in a new home; returns algorithm -> run id."""
    ids = {}
    with tempfile.TemporaryDirectory(prefix="golden-") as folder, thinned_checkpoints():
        for algorithm in ALGORITHMS:
            run_dir = Path(folder) / algorithm
            train(spec_of(algorithm), run_dir)
            ids[algorithm] = record(run_dir, home)
    _clean(home)
    return ids


@contextmanager
def thinned_checkpoints() -> Iterator[None]:
    """Checkpoints saved within the block have thinned vectors, with the right digests."""
    save = checkpoint.save

    def save_thinned(path: Path, state: dict[str, Any], *network: Any) -> tuple[str, int]:
        return save(path, _thinned(state), *network)

    with patch.object(checkpoint, "save", save_thinned):
        yield


def _thinned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _thinned(part) for key, part in value.items()}
    if isinstance(value, torch.Tensor) and value.dtype == torch.float32 and value.numel() >= LARGE:
        mask = np.uint32(0xFFFFFFFF << (23 - MANTISSA_BITS) & 0xFFFFFFFF)
        thinned = np.zeros(value.shape, np.float32)
        kept = np.ascontiguousarray(value.numpy().reshape(-1)[::KEPT_EVERY])
        thinned.reshape(-1)[::KEPT_EVERY] = (kept.view(np.uint32) & mask).view(np.float32)
        return torch.from_numpy(thinned)
    return value


def spec_of(algorithm: str) -> RunSpec:
    """The spec of an algorithm's run."""
    return parse_run_spec(
        {
            "algorithm": algorithm,
            "environment": "CartPole-v1",
            "config": config_of(algorithm) | {"evaluation_episodes": 2},
            "stop": {"agent_steps": 600},
            "seed": 1,
            "device": "cpu",
            "name": algorithm,
            "tags": ["golden"],
        }
    )


def train(spec: RunSpec, run_dir: Path, *, attempt: int = 1) -> None:
    """Train a run, from its newest checkpoint if it has one.

    Args:
        spec: of the run.
        run_dir: directory of the run.
        attempt: number of the attempt that trains.
    """
    run_dir.mkdir(exist_ok=True)
    (run_dir / "spec.json").write_text(spec.model_dump_json(indent=1), "utf-8")
    with _prepared_torch():
        resume = checkpoint.newest(run_dir / "checkpoints")
        ended = Training(spec, run_dir, attempt=attempt, resume=resume).run()
    assert ended.state == "finished", ended


@contextmanager
def _prepared_torch() -> Iterator[None]:
    prepare_torch()
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def events_of(run_dir: Path, attempt: int) -> list[AnyEvent]:
    """Every event of an attempt's log, in order."""
    log = run_dir / "attempts" / str(attempt) / "events.log"
    return [event for frame, _ in read_frames(log) for event in frame]


def record(run_dir: Path, home: Path) -> str:
    """Record a run directory in a home, with `callboard runs import`; returns the run's id."""
    result = CliRunner().invoke(app, ["runs", "import", str(run_dir)], env={"CALLBOARD_HOME": str(home)})
    assert result.exit_code == 0, result.output
    return result.stdout.split()[-1]


def _clean(home: Path) -> None:
    """Leave one database file, the run directories and the artifacts."""
    with closing(sqlite3.connect(home / "callboard.sqlite3")) as database:
        database.execute("PRAGMA journal_mode=DELETE")
        database.execute("VACUUM")
    for path in home.iterdir():
        if path.name not in ("callboard.sqlite3", "runs", "artifacts"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def pack(home: Path, ids: dict[str, str], archive: Path) -> None:
    """Write a home to an archive, without owners and times. A file with two names is stored once."""

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mtime = 0
        return entry

    (home / "ids.json").write_text(json.dumps(ids, indent=1), "utf-8")
    with lzma.open(archive, "wb", preset=9) as file, tarfile.open(fileobj=file, mode="w") as packed:
        for path in sorted(home.iterdir()):
            packed.add(path, path.name, filter=plain)


def unpack(archive: Path, home: Path) -> dict[str, str]:
    """Unpack an archive into a new home; returns algorithm -> run id."""
    with tarfile.open(archive) as packed:
        packed.extractall(home, filter="data")
    ids: dict[str, str] = json.loads((home / "ids.json").read_text("utf-8"))
    return ids


def main() -> None:
    """Generate the archive."""
    archive = Path(sys.argv[1]) if len(sys.argv) > 1 else ARCHIVE
    with tempfile.TemporaryDirectory(prefix="golden-") as folder:
        home = Path(folder) / "home"
        pack(home, generate(home), archive)
    size_bytes = archive.stat().st_size
    sys.stdout.write(f"{archive}: {size_bytes:,} bytes\n")
    if size_bytes > MAX_ARCHIVE_BYTES:
        sys.exit(f"at most {MAX_ARCHIVE_BYTES:,} bytes are committed")


if __name__ == "__main__":
    main()
