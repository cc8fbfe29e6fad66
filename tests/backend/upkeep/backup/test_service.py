import gc
import hashlib
import json
import random
import shutil
import sqlite3
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import pytest
from sqlalchemy import Engine, Table, delete, insert, select, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from backend.access.auth import repository as auth
from backend.access.auth import service as logins
from backend.access.auth.secrets import hash_secret
from backend.db import (
    AlertTarget,
    AuditEntry,
    Base,
    Branch,
    Checkpoint,
    CleanUp,
    DeletedRun,
    Experiment,
    ExperimentCell,
    ExternalSource,
    IdempotencyKey,
    Job,
    LiveSettings,
    LoginLimit,
    LoginSession,
    PlaySession,
    Recording,
    RecordingPart,
    RemovedFile,
    RetentionSettings,
    Run,
    StartSet,
    StepNote,
    StoredAgent,
    StoredSaliency,
    Token,
    User,
)
from backend.db.base import new_id
from backend.db.checked_json import CheckedJson
from backend.db.engine import make_engine, reading, writing
from backend.experiments.experiments.stored import CHECKS
from backend.platform.artifacts import ArtifactKind, ArtifactStore, observations_file, thumbnail_file
from backend.platform.principals import Role
from backend.platform.settings import Settings
from backend.runs.runs import actions
from backend.runs.runs import service as runs
from backend.specs.states import RunState
from backend.upkeep.backup import archive, repository, service
from backend.upkeep.backup.archive import Artifact, BackupError, BackupManifest
from tests.backend.analysis.metrics.oracle import METRICS, RecordedRun
from tests.support.databases import Databases
from tests.support.rows import (
    add_attempt,
    add_host,
    agent_card,
    episode_row,
    evaluation_row,
    make_checkpoint,
    make_run,
    video_row,
)
from tests.support.waiting import until

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)

SWEEP = {"name": "s", "run": {}, "space": {"config.beta": {"values": [0.1]}}}
STUDY = {
    "name": "s",
    "arms": [{"label": "a", "algorithm": "a3c"}],
    "environments": ["e"],
    "draws": {"n": 1},
    "custom": {},
}
EPISODE_OUTCOME = {
    "value": 0.1,
    "true_return": 1.0,
    "discounted_return": 0.1 + 0.2,
    "length_steps": 1,
    "n_valued": 1,
}
SALIENCY = {
    "height": 1,
    "width": 1,
    "rows": [0],
    "columns": [0],
    "policy": [[0.1 + 0.2]],
    "value": [[0.1]],
    "frame": "AA==",
    "channels": 1,
}

SECRET = "jsons://lab.example/address-with-a-secret"

Rows = dict[str, list[tuple[Any, ...]]]

LEFT_OUT = ("clean_up", "sessions", "login_links", "shares")
"""Tables whose rows no restore has."""


def _settings(home: Path, database_url: str | None, **changes: Any) -> Settings:
    return Settings(home=home, database_url=database_url, **changes)


def _content(name: str) -> bytes:
    return random.Random(name).randbytes(3_000)


def _file(store: ArtifactStore, folder: Path, run: Run, kind: ArtifactKind, name: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(_content(name))
    store.put(folder / name, run.id, kind)


def _fill(engine: Engine, store: ArtifactStore, folder: Path) -> Run:
    """Store rows in every table, and files; return a run with one checkpoint."""
    recorded = RecordedRun(engine, seed=1)
    recorded.append({METRICS[0]: 30, METRICS[1]: 5})
    add_attempt(engine, recorded.run_id, log_offset_bytes=2**40)
    add_host(engine, "a")
    run, child = make_run(engine, RunState.FINISHED), make_run(engine, tags=["é", "\u2603"], notes="x\ny")
    episode = episode_row(run.id, replay="r.npz", video="v.mp4", video_rendered_at=NOW, video_bytes=3_000)
    episode.observations_sha256 = "f" * 64
    episode.thumbnail_bytes = 3_000
    checkpoint = make_checkpoint(engine, run, score=1e-300, best_return=-0.1)
    with writing(engine) as session:
        saved = session.get_one(Checkpoint, checkpoint.id)
        saved.sha256 = hashlib.sha256(_content(checkpoint.file)).hexdigest()
    for kind, name in (("checkpoints", checkpoint.file), ("replays", "r.npz"), ("videos", "v.mp4")):
        _file(store, folder, run, kind, name)  # type: ignore[arg-type]
    _file(store, folder, run, "videos", observations_file(episode.id))
    _file(store, folder, run, "videos", thumbnail_file(episode.id))
    with writing(engine) as session:
        user = auth.add_user(session, "ada", Role.ADMIN, "hash")
        logins.create_login_link(session)
        logins.create_token(session, user, "t", Role.VIEWER, NOW + timedelta(days=1))
        session.add(
            LoginSession(
                id=new_id(),
                token_hash="0" * 64,
                user_id=user.id,
                created_at=NOW,
                expires_at=NOW,
                last_used_at=NOW,
            )
        )
        # A row that refers to one with a higher key.
        stored = session.get_one(Run, run.id)
        stored.parent_id, stored.created_by = child.id, user.id
        session.add_all(
            [
                episode,
                evaluation_row(run.id, 100, 0.1 + 0.2),
                evaluation_row(run.id, 200, None),
                AuditEntry(id=new_id(), time=NOW, action="x", path="/", body={"a": [None]}, request_id="r"),
                AlertTarget(
                    id=new_id(),
                    name="lab",
                    kind="json",
                    secret_url=SECRET,
                    masked_url="jsons://lab.example/****",
                    created_at=NOW,
                ),
                DeletedRun(id=new_id()),
                ExternalSource(run_id=child.id, source=new_id(), sequence=7),
                IdempotencyKey(actor_id="a", key="k", fingerprint="f", status=201, body="{}", created_at=NOW),
                Job(
                    id=new_id(), run_id=run.id, kind="video", target_id=episode.id, created_at=NOW, state="x"
                ),
                LiveSettings(run_id=run.id, version=1, requested_at=NOW, changes={"beta": 0.5}, state="x"),
                StepNote(
                    id=new_id(),
                    run_id=run.id,
                    agent_steps=7,
                    text="falls",
                    created_at=NOW,
                    created_by=user.id,
                ),
                LoginLimit(key="k", failures=1, blocked_until=NOW, expires_at=NOW),
                RetentionSettings(scope="installation", settings={"videos_days": 3}, changed_at=NOW),
                RemovedFile(run_id=run.id, kind="checkpoints", file="old.pt", removed_at=NOW),
                video_row(child.id, error="no video"),
                PlaySession(
                    id=new_id(),
                    user_id=user.id,
                    environment="e",
                    environment_config={},
                    scripted=True,
                    state="ended",
                    created_at=NOW,
                ),
                StartSet(
                    id=new_id(),
                    created_at=NOW,
                    name="s",
                    version=1,
                    environment="e",
                    source="agent",
                    origin="a run",
                    n_points=1,
                    n_games=1,
                    n_people=0,
                    state="ready",
                    document=b"d",
                    sha256="0" * 64,
                    states=b"s",
                ),
            ]
        )
        session.flush()
        session.add(
            Branch(
                id=new_id(),
                episode_id=episode.id,
                run_id=run.id,
                created_at=NOW,
                decision=1,
                n_continuations=2,
                horizon=3,
                seed=2**62,
                policy_run_id=child.id,
                checkpoint=checkpoint.file,
                checkpoint_id=checkpoint.id,
                checkpoint_agent_steps=2**40,
                action_values=False,
                gamma=0.99,
                episode_outcome=EPISODE_OUTCOME,
                outcome={"value": 0.1 + 0.2, "policy": [], "continuations": []},
                rewards=b"r",
            )
        )
        session.add(
            StoredAgent(
                id=new_id(),
                run_id=run.id,
                checkpoint_id=checkpoint.id,
                checkpoint=checkpoint.file,
                format="onnx",
                created_at=NOW,
                card=agent_card(run.id).model_dump(mode="json"),
                sha256="0" * 64,
                n_bytes=2**40,
            )
        )
        session.add(
            StoredSaliency(
                id=new_id(),
                episode_id=episode.id,
                run_id=run.id,
                created_at=NOW,
                decision=1,
                policy_run_id=child.id,
                checkpoint=checkpoint.file,
                checkpoint_id=checkpoint.id,
                checkpoint_agent_steps=2**40,
                action_values=True,
                map=SALIENCY,
            )
        )
        recording = Recording(
            id=new_id(),
            session_id=new_id(),
            user_id=user.id,
            environment="e",
            environment_config={},
            protocol="scripted",
            seed=2**62,
            frames_per_step=4,
            action_names=["NOOP"],
            versions={},
            started_at=NOW,
        )
        session.add(recording)
        session.flush()
        session.add(RecordingPart(recording_id=recording.id, first_step=0, content=b"p", sha256="0" * 64))
        actions.change(session, child.id, {"group": "g"})
        sweep_id = new_id()
        session.add(
            Experiment(id=sweep_id, created_at=NOW, kind="sweep", name="s", spec=SWEEP, state="running")
        )
        study_id = new_id()
        session.add(
            Experiment(id=study_id, created_at=NOW, kind="study", name="s", spec=STUDY, state="running")
        )
        session.flush()
        session.add_all(
            ExperimentCell(
                experiment_id=experiment_id,
                number=number,
                arm=0,
                environment="e",
                draw=number,
                seed=2**63 - 1,
                settings={"config.beta": 0.1},
                key="k",
                run_id=run_id,
            )
            for experiment_id in (sweep_id, study_id)
            for number, run_id in enumerate((run.id, None))
        )
        session.flush()
        for table in Base.metadata.sorted_tables:
            if table.name not in LEFT_OUT and session.execute(select(table).limit(1)).first() is None:
                session.execute(insert(table).values(_any_row(session, table)))
    return run


def _any_row(session: Session, table: Table) -> dict[str, Any]:
    """A row of a table that `_fill` does not name, with references to rows that exist."""
    values: dict[type, Any] = {
        str: "x",
        int: 1,
        float: 0.5,
        bool: False,
        datetime: NOW,
        bytes: b"x",
        dict: {},
    }
    row = {}
    for column in table.columns:
        if column.foreign_keys:
            [reference] = column.foreign_keys
            row[column.name] = session.scalar(select(reference.column).limit(1))
        elif not column.nullable:
            row[column.name] = (
                column.type.empty if isinstance(column.type, CheckedJson) else values[column.type.python_type]
            )
    return row


def _rows(url: str) -> Rows:
    """All rows; of those that a restore changes, what it leaves."""
    engine = make_engine(url)
    with engine.connect() as connection:
        rows_of = {
            name: sorted((tuple(row) for row in connection.execute(select(table))), key=repr)
            for name, table in Base.metadata.tables.items()
            if name not in LEFT_OUT
        }
        for name in ("tokens", "alert_targets"):
            table = Base.metadata.tables[name]
            rows_of[name] = sorted(tuple(row) for row in connection.execute(select(table.c.id, table.c.name)))
    engine.dispose()
    assert all(rows_of.values()), [name for name, rows in rows_of.items() if not rows]
    return rows_of


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def source(own_database_url: str, tmp_path: Path) -> Settings:
    settings = _settings(tmp_path / "source", own_database_url)
    engine = make_engine(settings.database)
    _fill(engine, ArtifactStore(settings.artifacts), tmp_path / "local")
    engine.dispose()
    return settings


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.service)])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Settings]:
    if request.param == "sqlite":
        yield _settings(tmp_path / "target", None)
    else:
        server: Databases = request.getfixturevalue("postgres")
        with server.database(migrated=False) as url:
            yield _settings(tmp_path / "target", url)


@pytest.fixture
def small(tmp_path: Path, sqlite_template: Path) -> tuple[Settings, Path]:
    """An installation with one run, and some other rows with JSON, on SQLite; and its backup."""
    settings = _settings(tmp_path / "small", None)
    settings.home_dir.mkdir()
    shutil.copyfile(sqlite_template, settings.home_dir / "callboard.sqlite3")
    engine = make_engine(settings.database)
    run = make_run(engine, RunState.FINISHED)
    checkpoint = make_checkpoint(engine, run)
    add_host(engine, "a")
    with writing(engine) as session:
        session.add_all(
            [
                episode_row(run.id, replay="r.npz"),
                Experiment(id="sweep", created_at=NOW, kind="sweep", name="s", spec=SWEEP, state="running"),
                Experiment(id="study", created_at=NOW, kind="study", name="s", spec=STUDY, state="running"),
                RetentionSettings(scope="installation", settings={"videos_days": 3}, changed_at=NOW),
            ]
        )
    _file(ArtifactStore(settings.artifacts), tmp_path / "local", run, "checkpoints", checkpoint.file)
    engine.dispose()
    service.create(settings, tmp_path / "small.tar")
    return settings, tmp_path / "small.tar"


def test_restored_installation_has_all_rows_and_files(
    source: Settings, target: Settings, tmp_path: Path
) -> None:
    path = tmp_path / "backup.tar"
    manifest = service.create(source, path)
    assert (manifest.n_runs, manifest.n_files) == (3, 5)
    assert [name[-16:] for name in manifest.damaged] == ["observations.mp4"], "its checksum is another one"
    assert path.stat().st_mode & 0o777 == 0o600
    assert SECRET.encode() not in path.read_bytes()
    service.restore(target, path)
    assert _rows(target.database) == _rows(source.database)
    assert _files(target.home_dir / "artifacts") == _files(source.home_dir / "artifacts")
    assert [path.name for path in target.home_dir.iterdir() if "sqlite" not in path.name] == ["artifacts"]
    engine = make_engine(target.database)
    run = make_run(engine, RunState.FINISHED)  # ids of log lines and transitions continue
    with writing(engine) as session:
        runs.remove(session, session.get_one(Run, run.id))
    engine.dispose()
    with pytest.raises(BackupError, match="is not empty: restore into an empty installation"):
        service.restore(target, path)


@pytest.mark.long
def test_restore_ends_sessions_links_and_tokens_unless_told_otherwise(
    source: Settings, tmp_path: Path
) -> None:
    engine = make_engine(source.database)
    with writing(engine) as session:
        user = session.scalars(select(User)).first()
        assert user is not None
        browser = logins.Browser("127.0.0.1", "a browser")
        secrets: dict[str, Any] = {
            "session": logins.open_session(session, user, "password", browser)[1],
            "link": logins.create_login_link(session),
            "token": logins.create_token(session, user, "leaked", Role.ADMIN, None)[1],
        }
    path = tmp_path / "backup.tar"
    service.create(source, path)
    with writing(engine) as session:
        session.execute(delete(Token))
    engine.dispose()

    def valid(settings: Settings) -> dict[str, bool]:
        restored_engine = make_engine(settings.database)
        with writing(restored_engine) as session:
            users = {
                "session": logins.find_principal(session, secrets["session"], timedelta(days=1)),
                "link": auth.use_login_link(session, hash_secret(secrets["link"])),
                "token": logins.find_token_principal(session, secrets["token"]),
            }
        restored_engine.dispose()
        return {name: user is not None for name, user in users.items()}

    default, kept = _settings(tmp_path / "default", None), _settings(tmp_path / "kept", None)
    assert "leaked" in service.restore(default, path).expired_tokens
    assert valid(default) == {"session": False, "link": False, "token": False}
    assert service.restore(kept, path, keep_tokens=True).expired_tokens == []
    assert valid(kept) == {"session": False, "link": False, "token": True}


@pytest.mark.long
def test_backup_has_state_of_one_moment_although_files_are_removed_meanwhile(
    source: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, files = _rows(source.database), _files(source.home_dir / "artifacts")
    engine, opened = make_engine(source.database), ArtifactStore.open
    from backend.coordination.context import Context
    from workers.clean_up import delete_removed_files, purge_deleted_runs

    context = Context.from_settings(source)

    def open_while_others_write(store: ArtifactStore, *place: Any) -> IO[bytes]:
        monkeypatch.setattr(ArtifactStore, "open", opened)
        make_run(engine)
        with writing(engine) as session:
            checkpoint = session.scalars(select(Checkpoint)).one()
            runs.remove(session, session.get_one(Run, checkpoint.run_id))
        purge_deleted_runs(context)
        assert delete_removed_files(context, grace_s=0) == 0, "held"
        return opened(store, *place)

    monkeypatch.setattr(ArtifactStore, "open", open_while_others_write)
    assert service.create(source, tmp_path / "backup.tar").n_files == 5
    restored = _settings(tmp_path / "restored", None)
    service.restore(restored, tmp_path / "backup.tar")
    assert _rows(restored.database) == before
    assert _files(restored.home_dir / "artifacts") == files
    context.close()
    engine.dispose()


@pytest.mark.long
def test_hold_on_files_is_renewed_while_the_database_is_copied(
    source: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, copy_rows = make_engine(source.database), repository.snapshot
    seen: list[datetime] = []

    def held_until() -> datetime | None:
        with reading(engine) as session:
            return session.scalar(select(CleanUp.held_until))

    def copy_slowly(database: Engine, target: Path) -> None:
        first = held_until()
        assert first is not None
        until(lambda: (held_until() or first) > first)
        copy_rows(database, target)
        seen.append(first)

    monkeypatch.setattr(service, "RENEWAL_INTERVAL_S", 0.05)
    monkeypatch.setattr(repository, "snapshot", copy_slowly)
    try:
        service.create(source, tmp_path / "backup.tar")
    finally:
        engine.dispose()
    assert len(seen) == 1
    assert "backup-hold" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.long
def test_backup_whose_hold_on_files_expired_is_refused(
    small: tuple[Settings, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "HOLD_S", -1.0)
    with pytest.raises(BackupError, match="files may have been deleted"):
        service.create(small[0], tmp_path / "late.tar")
    assert not (tmp_path / "late.tar").exists()


@pytest.mark.long
@pytest.mark.service
def test_artifacts_are_copied_from_and_to_s3(
    small: tuple[Settings, Path], s3_url: str, tmp_path: Path
) -> None:
    remote = _settings(tmp_path / "remote", None, artifacts_url=s3_url)
    service.restore(remote, small[1])
    manifest = service.create(remote, tmp_path / "again.tar")
    assert [Path(file).name for file in manifest.damaged] == ["a1-s000000000100.pt", "r.npz"]
    assert manifest.n_files == 1
    service.restore(_settings(tmp_path / "local-again", None), tmp_path / "again.tar")
    assert _files(tmp_path / "local-again" / "artifacts") == _files(small[0].home_dir / "artifacts")
    (tmp_path / "remote" / "callboard.sqlite3").unlink()
    with pytest.raises(BackupError, match=r"the artifacts at s3://.* are not empty"):
        service.restore(remote, small[1])


@pytest.mark.long
def test_restore_killed_at_any_point_can_be_repeated(
    source: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "backup.tar"
    service.create(source, path)
    put = ArtifactStore.put
    for n_files in range(5):
        target = _settings(tmp_path / f"target-{n_files}", None)
        left = [None] * n_files

        def killed(store: ArtifactStore, *place: Any, left: list[None] = left) -> None:
            if not left:
                raise SystemExit
            left.pop()
            put(store, *place)

        monkeypatch.setattr(ArtifactStore, "put", killed)
        with pytest.raises(SystemExit):
            service.restore(target, path)
        monkeypatch.setattr(ArtifactStore, "put", put)
        service.restore(target, path)
        assert _rows(target.database) == _rows(source.database)
        assert _files(target.home_dir / "artifacts") == _files(source.home_dir / "artifacts")


@pytest.mark.long
def test_damaged_backup_is_refused_and_changes_nothing(small: tuple[Settings, Path], tmp_path: Path) -> None:
    path, damaged, rng = small[1], tmp_path / "damaged.tar", random.Random(0)
    whole = path.read_bytes()
    with tarfile.open(path) as tar:
        content = [(m.offset_data + rng.randrange(m.size)) for m in tar for _ in range(4)]
        checksums = tar.getmember("SHA256SUMS")
    line_end = whole.index(b"\n", checksums.offset_data)  # becomes another character that ends lines
    target = _settings(tmp_path / "target", None)
    for at in (line_end, *content):
        damaged.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(BackupError, match=r"damaged|no manifest"):
            service.restore(target, damaged)
    for length in (0, 100, 512, *(rng.randrange(len(whole) - 12_000) for _ in range(20))):
        damaged.write_bytes(whole[:length])
        with pytest.raises(BackupError, match=r"damaged|incomplete"):
            service.restore(target, damaged)
    assert not target.home_dir.exists()


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "kind"),
    [("../x", tarfile.REGTYPE), ("/etc/x", tarfile.REGTYPE), ("database.sqlite3", tarfile.SYMTYPE)],
)
def test_archive_with_other_members_is_refused(tmp_path: Path, name: str, kind: bytes) -> None:
    path = tmp_path / "other.tar"
    with tarfile.open(path, "w") as tar:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, "/etc/passwd"
        tar.addfile(member, BytesIO())
    with pytest.raises(BackupError, match="is not a backup of Callboard: it contains"):
        service.restore(_settings(tmp_path / "target", None), path)
    assert not (tmp_path / "target").exists()


@pytest.mark.long
def test_sparse_or_long_member_or_header_is_refused_before_it_is_read(tmp_path: Path) -> None:
    header = tarfile.TarInfo("manifest.json")
    header.size = 512
    block = bytearray(header.tobuf(tarfile.GNU_FORMAT))
    size = b"\x80" + (3 * 2**30).to_bytes(11, "big")
    block[156:157], block[257:265] = b"S", b"ustar  \0"
    block[386:410], block[410:422], block[483:495] = b"%011o\0%011o\0" % (0, 512), size, size
    block[148:156] = b" " * 8
    block[148:155] = b"%06o\0" % sum(block)
    (tmp_path / "sparse.tar").write_bytes(bytes(block) + b"x" * 512 + bytes(10_240))
    with tarfile.open(tmp_path / "long.tar", "w") as tar:
        header.size = archive.MAX_MANIFEST_BYTES + 1
        tar.addfile(header, BytesIO(bytes(header.size)))
    for name, extension in (("extended", tarfile.XHDTYPE), ("renamed", tarfile.GNUTYPE_LONGNAME)):
        header = tarfile.TarInfo("x")
        header.type, header.size = extension, 2**17
        member = tarfile.TarInfo("manifest.json").tobuf()
        (tmp_path / f"{name}.tar").write_bytes(header.tobuf() + b"x" * header.size + member + bytes(10_240))
    for name in ("sparse", "long", "extended", "renamed"):
        with pytest.raises(BackupError, match="is not a backup of Callboard: it"):
            service.restore(_settings(tmp_path / "target", None), tmp_path / f"{name}.tar")


def _many_files(path: Path) -> list[Artifact]:
    """Write a backup of 100 empty artifacts; return them."""
    files = [
        Artifact(run_id=new_id(), kind="replays", file=f"a1-training-s{k:012d}-e{k}.npz") for k in range(100)
    ]
    with archive.creating(path) as writer:
        for artifact in files:
            writer.add(artifact.member, BytesIO(), 0)
        writer.finish(_manifest("9999"))
    return files


@pytest.mark.long
def test_checksums_longer_than_the_largest_manifest_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "many.tar"
    files = _many_files(path)
    with tarfile.open(path) as tar:
        monkeypatch.setattr(archive, "MAX_MANIFEST_BYTES", tar.getmember("manifest.json").size)
        assert tar.getmember("SHA256SUMS").size > archive.MAX_MANIFEST_BYTES
    measured: list[str] = []
    line_bytes = archive.line_bytes

    def measure(name: str) -> int:
        measured.append(name)
        return line_bytes(name)

    monkeypatch.setattr(archive, "line_bytes", measure)
    assert archive.verify(path)[0] == _manifest("9999")
    assert len(measured) == len(set(measured)), "the limit is summed once, not for every file"
    assert [artifact for artifact, _ in archive.artifacts(path)] == files


@pytest.mark.long
def test_memory_for_reading_a_backup_does_not_depend_on_the_number_of_its_files(tmp_path: Path) -> None:
    path = tmp_path / "many.tar"
    _many_files(path)
    n_headers = [
        sum(type(kept) is tarfile.TarInfo for kept in gc.get_objects())
        for n_read, _ in enumerate(archive.artifacts(path), 1)
        if n_read in (10, 100)
    ]
    assert n_headers[1] <= n_headers[0]


@pytest.mark.long
@pytest.mark.parametrize(
    "damage", ["[]", "{", '{"a": 1}', "null", "[" * 100_000], ids=lambda damage: damage[:4]
)
def test_damaged_rows_are_named_in_a_backup_and_restored_as_they_are(
    small: tuple[Settings, Path], target: Settings, tmp_path: Path, damage: str
) -> None:
    source, named = small[0], []
    columns = [] if damage == '{"a": 1}' else [("retention_settings", "scope", "settings")]
    columns += [(table, "id", "spec") for table in ("runs", "experiments")]
    with closing(sqlite3.connect(source.home_dir / "callboard.sqlite3")) as connection:
        for table, key_column, column in columns:
            connection.execute(f"UPDATE {table} SET {column} = ?", (damage,))
            for (key,) in connection.execute(f"SELECT {key_column} FROM {table}"):
                named.append(f'{table} "{key}": {column}')
        connection.execute("UPDATE experiments SET state = 'nonsense' WHERE id = 'sweep'")
        named.append('experiments "sweep": state')
        connection.commit()
    manifest = service.create(source, tmp_path / "damaged.tar", CHECKS)
    assert (sorted(manifest.damaged_values), manifest.n_damaged_values) == (sorted(named), len(named))
    assert manifest.unrestorable is None
    assert archive.verify(tmp_path / "damaged.tar")[0] == manifest
    restored = service.restore(target, tmp_path / "damaged.tar", checks=CHECKS).manifest
    assert sorted(restored.damaged_values) == sorted(named)
    engine = make_engine(target.database)
    try:
        kept = json.loads(damage)
    except (ValueError, RecursionError):
        kept = damage
    with engine.connect() as connection:
        for table, _, column in columns:
            stored = connection.execute(text(f"SELECT CAST({column} AS TEXT) FROM {table}"))
            assert all(json.loads(value) == kept for value in stored.scalars())
    engine.dispose()


REFUSED = [
    "UPDATE runs SET created_at = '9999-99-99 00:00:00'",
    "UPDATE checkpoints SET file = '../../x'",
    "UPDATE episodes SET recorded_at = 'x'",
]


@pytest.mark.long
@pytest.mark.parametrize("statement", REFUSED)
def test_backup_says_which_row_has_a_restore_refused(
    small: tuple[Settings, Path], tmp_path: Path, statement: str
) -> None:
    source, path = small[0], tmp_path / "damaged.tar"
    with closing(sqlite3.connect(source.home_dir / "callboard.sqlite3")) as connection:
        assert connection.execute(statement).rowcount == 1
        connection.commit()
    manifest = service.create(source, path)
    assert (manifest.unrestorable or "").startswith(f"a row of its table {statement.split()[1]} is damaged: ")
    with pytest.raises(BackupError, match="is damaged, or not a backup of Callboard: a row of its table"):
        service.restore(_settings(tmp_path / "target", None), path)


@pytest.mark.long
@pytest.mark.parametrize(
    "statement",
    [
        *REFUSED,
        "CREATE VIEW v AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c",
    ],
)
def test_backup_with_a_row_that_no_page_can_show_is_refused_and_changes_nothing(
    small: tuple[Settings, Path], tmp_path: Path, statement: str
) -> None:
    database, path = tmp_path / "database.sqlite3", tmp_path / "damaged.tar"
    archive.extract_database(small[1], database)
    engine = make_engine(small[0].database)
    schema = repository.schema_revision(engine)
    engine.dispose()
    with closing(sqlite3.connect(database)) as connection:
        changed = connection.execute(statement).rowcount
        connection.commit()
    assert changed != 0
    _backup_of(path, schema or "", database.read_bytes())
    target = _settings(tmp_path / "target", None)
    with pytest.raises(BackupError, match="is damaged, or not a backup of Callboard"):
        service.restore(target, path)
    assert not list(target.home_dir.glob("*.sqlite3"))


def _manifest(schema: str, format: int = archive.FORMAT) -> BackupManifest:
    return BackupManifest(
        format=format,
        version="7.0.0",
        schema_revision=schema,
        created_at="",
        n_runs=0,
        n_files=0,
        damaged=[],
    )


def _backup_of(path: Path, schema: str, database: bytes = b"", format: int = archive.FORMAT) -> None:
    with archive.creating(path) as writer:
        writer.add(archive.DATABASE, BytesIO(database), len(database))
        writer.finish(_manifest(schema, format))


@pytest.mark.long
def test_backup_of_unknown_version_is_refused(tmp_path: Path) -> None:
    for schema in ("9999", "0023"):
        path = tmp_path / f"{schema}.tar"
        _backup_of(path, schema)
        with pytest.raises(BackupError, match=r"was written by Callboard 7\.0\.0, whose database"):
            service.restore(_settings(tmp_path / "target", None), path)
    _backup_of(tmp_path / "newer.tar", "9999", format=2)
    with pytest.raises(BackupError, match=r"has format 2 of Callboard 7\.0\.0"):
        service.restore(_settings(tmp_path / "target", None), tmp_path / "newer.tar")
    assert not (tmp_path / "target").exists()


@pytest.mark.long
def test_restore_refuses_target_in_use_and_changes_nothing(
    small: tuple[Settings, Path], tmp_path: Path
) -> None:
    rows = _settings(tmp_path / "rows", None)
    rows.home_dir.mkdir()
    shutil.copyfile(small[0].home_dir / "callboard.sqlite3", rows.home_dir / "callboard.sqlite3")
    files = _settings(tmp_path / "files", None)
    (files.home_dir / "artifacts" / "runs" / "x").mkdir(parents=True)
    directories = _settings(tmp_path / "directories", None)
    (directories.runs_dir / "x").mkdir(parents=True)
    for target, message in (
        (rows, r"the database .* is not empty"),
        (files, r"the artifacts at .* are not empty"),
        (directories, "has run directories of another installation"),
    ):
        before = _files(target.home_dir)
        with pytest.raises(BackupError, match=message):
            service.restore(target, small[1])
        assert _files(target.home_dir) == before


@pytest.mark.long
def test_create_refuses_existing_file_missing_folder_missing_database_and_old_schema(
    small: tuple[Settings, Path], tmp_path: Path
) -> None:
    settings, path = small
    whole = path.read_bytes()
    with pytest.raises(BackupError, match="exists already"):
        service.create(settings, path)
    assert path.read_bytes() == whole
    with pytest.raises(BackupError, match="cannot be written: No such file or directory"):
        service.create(settings, tmp_path / "none" / "x.tar")
    with pytest.raises(BackupError, match="there is no database at"):
        service.create(_settings(tmp_path / "nowhere", None), tmp_path / "x.tar")
    old = _settings(tmp_path / "old", None)
    old.home_dir.mkdir()
    old.sqlite_file.touch()
    with pytest.raises(BackupError, match="run `callboard db upgrade` first"):
        service.create(old, tmp_path / "x.tar")
    assert not [path for path in tmp_path.iterdir() if "x.tar" in path.name or "-backup-" in path.name]


class _DiskFull(sqlite3.OperationalError):
    sqlite_errorname = "SQLITE_FULL"


@pytest.mark.long
def test_full_disk_is_not_called_a_damaged_database(
    small: tuple[Settings, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, path = small
    full = _DiskFull("database or disk is full")
    with monkeypatch.context() as broken:
        broken.setattr(repository, "snapshot", _fail_with(full))
        with pytest.raises(BackupError, match=f"cannot be copied to {tmp_path}: database or disk is full"):
            service.create(settings, tmp_path / "x.tar")
    wrapped = OperationalError("INSERT", {}, full)
    monkeypatch.setattr(repository, "refuse_active_schema", _fail_with(wrapped))
    target = _settings(tmp_path / "target", None)
    with pytest.raises(BackupError, match=f"cannot be copied to {target.home_dir}: .*disk is full"):
        service.restore(target, path)
    assert not [path for path in tmp_path.iterdir() if "x.tar" in path.name or "-backup-" in path.name]


def _fail_with(error: Exception) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail


@pytest.mark.long
def test_two_backups_to_one_name_make_one_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    slow, fast = archive.creating(path), archive.creating(path)
    for backup, content in ((slow, b"slow"), (fast, b"fast")):
        backup.__enter__().add("part", BytesIO(content), 4)
    fast.__exit__(None, None, None)
    with pytest.raises(BackupError, match="another backup has just written it"):
        slow.__exit__(None, None, None)
    with tarfile.open(path) as tar:
        part = tar.extractfile("part")
        assert part is not None
        assert part.read() == b"fast"
    assert list(tmp_path.iterdir()) == [path]
