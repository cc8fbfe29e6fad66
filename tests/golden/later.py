"""Generator of databases of later revisions than version 0.1.0's: `python -m tests.golden.later`.

It upgrades the newest stored database migration by migration. At each revision it adds rows for the tables
and columns that are new, and first, rows that one of these migrations changes. It stores only revisions that
are not stored yet, so that each database was written by the migrations of its time. After a new migration,
add rows for it to `ROWS` and run it.
"""

import json
import lzma
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from alembic.script import ScriptDirectory

from backend.db.migrate import config, upgrade
from tests.golden.generate import pack, write
from tests.golden.home import DATA, expected, unpack

TIME = "2026-11-23 12:00:00.000000"
OWNER = "01M7ZZN8HPMKKVH031KPSVSGJP"
PAAC = "01M7ZZN95SGW2RVXMBBHWB7H19"
CUSTOM, ATARI, EXTERNAL = (f"01M80000000000000000000{name}" for name in ("CST", "ATR", "EXT"))

DESCRIBED = {
    "id": "Own/Line-v0",
    "title": "Line",
    "summary": "Walk to the end of a line.",
    "observation": "vector",
    "observation_shape": [2],
    "action_names": ["LEFT", "RIGHT"],
    "frames_per_agent_step": 1,
}


class Database:
    """A database at one revision, to which rows are added."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.row_factory = sqlite3.Row

    def row(self, table: str, where: str) -> dict[str, Any]:
        """The first row of a table that fulfils a condition."""
        found = self._connection.execute(f'SELECT * FROM "{table}" WHERE {where} ORDER BY rowid').fetchone()
        return dict(found)

    def add(self, table: str, row: dict[str, Any]) -> None:
        """Add a row; lists and objects are JSON."""
        values = [json.dumps(its) if isinstance(its, dict | list) else its for its in row.values()]
        names, marks = ", ".join(f'"{name}"' for name in row), ", ".join("?" for _ in row)
        self._connection.execute(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', values)

    def change(self, table: str, where: str, **changes: Any) -> None:
        """Change every row of a table that fulfils a condition."""
        values = [json.dumps(its) if isinstance(its, dict | list) else its for its in changes.values()]
        names = ", ".join(f'"{name}" = ?' for name in changes)
        self._connection.execute(f'UPDATE "{table}" SET {names} WHERE {where}', values)


def _of_0009(database: Database) -> None:
    """What migrations 0010, 0012 and 0016 change."""
    paac = database.row("runs", f"id = '{PAAC}'")
    host = database.row("hosts", "id = 'golden'")
    spec = json.loads(paac["spec"])
    custom = spec | {"environment": "Own/Line-v0", "own": DESCRIBED, "environment_config": {}}
    database.add(
        "runs", paac | {"id": CUSTOM, "name": "custom", "environment": "Own/Line-v0", "spec": custom}
    )
    database.change(
        "hosts",
        "id = 'golden'",
        own_environments=[DESCRIBED],
        environments=[*json.loads(host["environments"]), "Own/Line-v0"],
    )
    stored = json.loads(lzma.decompress((DATA / "specs.json.xz").read_bytes()))
    atari = stored["dqn atari defaults"]
    columns = {name: atari[name] for name in ("algorithm", "environment", "seed")}
    database.add("runs", paac | columns | {"id": ATARI, "name": "dqn on Atari", "spec": atari})
    evaluation = database.row("evaluations", f"run_id = '{PAAC}'")
    database.add("evaluations", evaluation | {"id": ATARI, "run_id": ATARI, "protocol": "noop_starts"})
    series = database.row("series", f"run_id = '{PAAC}' AND metric = 'eval/plain/mean_return'")
    chunk = database.row("series_chunks", f"series_id = {series['id']}")
    metric = "eval/noop_starts/mean_return"
    database.add("series", series | {"id": 10_000, "run_id": ATARI, "metric": metric})
    database.add("series_chunks", chunk | {"id": 10_000, "series_id": 10_000})
    owner = database.row("users", f"id = '{OWNER}'")
    database.add("users", owner | {"id": CUSTOM, "name": "plain", "password_hash": "correct horse"})


def _of_0011(database: Database) -> None:
    provenance = {"commit": "0ebddad", "dirty": False, "packages": {"torch": "2.13.0"}, "device": "cpu"}
    database.change("attempts", f"run_id = '{PAAC}'", provenance=provenance)


def _of_0013(database: Database) -> None:
    database.change("episodes", f"run_id = '{PAAC}'", replay_sha256="ab" * 32)
    database.add("login_limits", {"key": "cd" * 32, "failures": 4, "blocked_until": TIME, "expires_at": TIME})


def _of_0014(database: Database) -> None:
    database.change("runs", f"id = '{CUSTOM}'", deleted_at=TIME)


def _of_0015(database: Database) -> None:
    database.change("runs", f"id = '{ATARI}'", host_deaths=2)


def _of_0016(database: Database) -> None:
    database.change("sessions", "true", address="127.0.0.1", user_agent="Firefox", method="password")
    database.change("tokens", "true", created_with="session", last_used_at=TIME, last_used_address="::1")
    token = database.row("tokens", "true")
    derived = {"id": CUSTOM, "name": "derived", "token_hash": "ef" * 32, "parent_id": token["id"]}
    database.add("tokens", token | derived)
    database.change("audit_entries", "true", address="127.0.0.1")
    database.change("jobs", "true", requested_by=OWNER)


def _of_0017(database: Database) -> None:
    settings = {"enabled": True, "keep_last_checkpoints": 3}
    database.add(
        "retention_settings",
        {"scope": "group:baselines", "settings": settings, "changed_at": TIME, "changed_by": OWNER},
    )
    removed = {"id": 1, "run_id": PAAC, "kind": "replays", "file": "a1-e000001.npz", "removed_at": TIME}
    database.add("removed_files", removed)
    database.change("clean_up", "id = 1", pass_started_at=TIME, after_run_id=PAAC)
    database.change("episodes", f"run_id = '{PAAC}'", replay_bytes=1_234)
    episode = database.row("episodes", f"run_id = '{PAAC}'")
    database.change("episodes", f"id = '{episode['id']}'", removed=1)
    database.change("attempts", f"run_id = '{PAAC}'", log_bytes=5_678)


def _of_0018(database: Database) -> None:
    database.change("users", f"id = '{CUSTOM}'", oidc_issuer="https://issuer.example", oidc_subject="1")


def _of_0019(database: Database) -> None:
    run = database.row("runs", f"id = '{PAAC}'")
    spec = {"algorithm": "my method", "environment": "my environment", "config": {"lr": 0.1}, "seed": 1}
    columns = {name: spec[name] for name in ("algorithm", "environment", "seed")}
    own = {"id": EXTERNAL, "name": "external", "origin": "external", "token_id": CUSTOM, "spec": spec}
    database.add("runs", run | columns | own)
    database.add("external_sources", {"run_id": EXTERNAL, "source": CUSTOM, "sequence": 7, "dropped": 1})
    database.change("tokens", f"id = '{CUSTOM}'", scope="external")


def _of_0021(database: Database) -> None:
    database.add(
        "videos",
        {
            "id": CUSTOM,
            "run_id": EXTERNAL,
            "received_at": TIME,
            "agent_steps": 100,
            "wall_time_s": 1.5,
            "form": "frames",
            "fps": 30.0,
            "upload": ATARI,
            "sent": "1.bin",
            "sent_sha256": "01" * 32,
            "sent_bytes": 1_000,
            "video_bytes": 0,
        },
    )


def _of_0022(database: Database) -> None:
    run = json.loads(database.row("runs", f"id = '{PAAC}'")["spec"])
    database.add(
        "sweeps",
        {
            "id": CUSTOM,
            "created_at": TIME,
            "created_by": OWNER,
            "name": "rates",
            "spec": {"run": run, "grid": {"config.beta": [0.01, 0.02]}, "seeds": 1},
            "state": "running",
            "state_reason": "",
            "looks": 0,
            "revision": 1,
        },
    )
    for number, beta in enumerate((0.01, 0.02)):
        settings = {"config.beta": beta}
        database.add("sweep_configurations", {"sweep_id": CUSTOM, "number": number, "settings": settings})
        member = {"sweep_id": CUSTOM, "configuration": number, "seed": 1}
        database.add("sweep_members", member | {"run_id": None if number else PAAC})


def _of_0023(database: Database) -> None:
    database.change("hosts", "id = 'golden'", stopped_at=TIME, worker_id="0123456789abcdef0123456789abcdef")


ROWS = {
    "0009": _of_0009,
    "0011": _of_0011,
    "0013": _of_0013,
    "0014": _of_0014,
    "0015": _of_0015,
    "0016": _of_0016,
    "0017": _of_0017,
    "0018": _of_0018,
    "0019": _of_0019,
    "0021": _of_0021,
    "0022": _of_0022,
    "0023": _of_0023,
}
"""By revision, what adds its rows; 0010, 0012 and 0020 bring no new tables or columns."""


def main() -> None:
    """Add a database of each revision that is not stored yet."""
    with tempfile.TemporaryDirectory(prefix="golden-") as temporary:
        folder = Path(temporary)
        counts: dict[str, dict[str, int]] = {}
        databases = folder / "later"
        if (DATA / "later.tar.xz").exists():
            unpack("later", databases)
            counts = expected("later")
            newest = databases / f"{max(counts)}.sqlite3"
        else:
            databases.mkdir()
            newest = folder / "0009.sqlite3"
            shutil.copyfile(unpack("databases", folder / "databases") / newest.name, newest)
            _add_rows(newest)
        revisions = sorted(each.revision for each in ScriptDirectory.from_config(config()).walk_revisions())
        for revision in revisions:
            if revision > newest.stem:
                path = databases / f"{revision}.sqlite3"
                shutil.copyfile(newest, path)
                upgrade(f"sqlite:///{path}", revision)
                counts[revision] = _add_rows(path)
                newest = path
        pack(databases, "later")
        write("later", counts)


def _add_rows(path: Path) -> dict[str, int]:
    """Add the rows of a database's revision, and compact it; the number of rows of each table."""
    with closing(sqlite3.connect(path)) as connection:
        if path.stem in ROWS:
            ROWS[path.stem](Database(connection))
            connection.commit()
        for statement in ("PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA journal_mode=DELETE", "VACUUM"):
            connection.execute(statement)
        tables = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
        ).fetchall()
        return {name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for [name] in tables}


if __name__ == "__main__":
    main()
