"""Histograms, images and tables over REST: what is accepted, how much is kept, and how files are served."""

import hashlib
import io
import json
import struct
import zipfile
from typing import Any

import pytest
from pydantic import ValidationError

from backend.analysis.media import service as media
from backend.db import Media, RemovedFile, Run
from backend.db.engine import reading, writing
from backend.external.contents import shape_of
from backend.external.schemas import SentHistogram
from backend.fleet.storage import service as storage
from backend.platform.errors import Invalid
from backend.upkeep.backup.repository import named_files
from callboard.media import png_of
from tests.support.external import SOURCE, create, send, upload
from tests.support.service import RunningService

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBB", 13, b"IHDR", 6, 4, 8, 2, 0, 0, 0)


def histogram(**changes: Any) -> dict[str, Any]:
    """A valid histogram."""
    return {
        "metric": "a",
        "agent_steps": 5,
        "wall_time_s": 1,
        "edges": [0, 1, 2.5],
        "counts": [1, 2],
    } | changes


def of_file(sequence: int, content: bytes, **changes: Any) -> dict[str, Any]:
    """A request that stores an upload as an image."""
    fields = {"size_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(), "metric": "state"}
    body = {"source": SOURCE, "sequence": sequence, "agent_steps": 5, "wall_time_s": 1.0, "upload": SOURCE}
    return body | fields | {"kind": "image"} | changes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edges": [0, 1]}, "edges: must be 3, one more than counts"),
        ({"edges": [0, 2, 1]}, "edges: must increase"),
        ({"counts": [0, 0]}, "counts: at least one must be above 0"),
        ({"counts": [-1, 2]}, "greater than or equal to 0"),
        ({"edges": [*range(66)], "counts": [1] * 65}, "at most 65"),
        ({"metric": ""}, "metric"),
    ],
)
def test_a_histogram_that_is_none_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        SentHistogram.model_validate(histogram(**changes))


@pytest.mark.service
def test_a_batch_that_is_sent_again_changes_nothing(service: RunningService) -> None:
    run = create(service.client)
    body = {"source": SOURCE, "sequence": 1, "histograms": [histogram()]}
    assert send(service.client, run, "histograms", body)["stored"] == 1
    assert send(service.client, run, "histograms", body)["stored"] == 0
    [series] = service.client.get(f"/api/v1/runs/{run['id']}/media").json()["items"]
    assert series["agent_steps"] == [5]
    [media_id] = series["ids"]
    stored = service.client.get(f"/api/v1/media/{media_id}").json()
    assert (stored["edges"], stored["counts"]) == ([0, 1, 2.5], [1, 2])


@pytest.mark.service
def test_what_a_run_has_no_room_for_is_dropped_and_counted(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(media, "MAX_ITEMS", 3)
    run = create(service.client)
    body = {"source": SOURCE, "sequence": 1, "histograms": [histogram(agent_steps=step) for step in range(5)]}
    answer = send(service.client, run, "histograms", body)
    assert (answer["stored"], answer["dropped"], answer["dropped_in_all"]) == (3, 2, 2)
    assert answer["dropped_rows"][0]["reason"] == "too_many_media"
    assert upload(service.client, run, PNG).is_success
    answer = send(service.client, run, "media", of_file(2, PNG))
    assert (answer["sequence"], answer["dropped"], answer["dropped_in_all"]) == (2, 1, 3)
    listed = service.client.get(f"/api/v1/runs/{run['id']}/media").json()
    assert (listed["n_not_kept"], listed["items"][0]["agent_steps"]) == (3, [0, 1, 2])
    lines = service.client.get(f"/api/v1/runs/{run['id']}/log").json()["items"]
    assert len([line for line in lines if "as many histograms" in line["message"]]) == 1


@pytest.mark.service
def test_image_is_served_as_what_it_is_and_nothing_else(service: RunningService) -> None:
    run = create(service.client)
    assert upload(service.client, run, PNG).is_success
    assert send(service.client, run, "media", of_file(1, PNG, caption="<script>"))["stored"] == 1
    [series] = service.client.get(f"/api/v1/runs/{run['id']}/media").json()["items"]
    answer = service.client.get(f"/api/v1/media/{series['ids'][0]}/file")
    assert answer.content == PNG
    assert answer.headers["Content-Type"] == "image/png"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Disposition"] == 'inline; filename="image-5.png"'
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    exported = service.client.get(f"/api/v1/runs/{run['id']}/media/export")
    with zipfile.ZipFile(io.BytesIO(exported.content)) as zipped:
        [image, index] = zipped.namelist()
        assert zipped.read(image) == PNG
        line = json.loads(zipped.read(index))
    assert (line["kind"], line["metric"], line["caption"], line["file"]) == (
        "image",
        "state",
        "<script>",
        image,
    )
    with reading(service.engine) as session:
        assert [(kind, digest) for _, kind, _, digest in named_files(session)] == [
            ("media", hashlib.sha256(PNG).hexdigest())
        ]


@pytest.mark.service
def test_files_of_media_are_kept_while_a_row_names_them(service: RunningService) -> None:
    run = create(service.client)
    assert upload(service.client, run, PNG).is_success
    send(service.client, run, "media", of_file(1, PNG))
    with writing(service.engine) as session:
        row = session.query(Media).one()
        assert row.file is not None
        storage.release_files(session, run["id"], "media", [row.file])
        session.flush()
        removed = session.query(RemovedFile).filter_by(kind="media").one()
        assert storage.is_needed(session, removed)
        session.delete(session.get_one(Run, run["id"]))
        session.flush()
        assert not storage.is_needed(session, removed)


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        ("image", b"<svg onload='alert(1)'/>", "is no image"),
        ("image", b"\x89PNG\r\n\x1a\n", "is no image"),
        ("image", b"\xff\xd8\xff\xe0", "is no image"),
        ("image", b"RIFF\0\0\0\0WEBPVP8X", "is no image"),
        ("image", PNG[:16] + struct.pack(">II", 4_097, 4) + PNG[24:], "4097 x 4 pixels"),
        ("image", PNG[:16] + struct.pack(">II", 0, 4) + PNG[24:], "0 x 4 pixels"),
        ("table", b"<html>", "is no table"),
        ("table", b'{"columns": ["a"], "rows": [[1, 2]]}', "row 0 has 2 cells"),
        ("table", b'{"columns": [], "rows": []}', "columns"),
        ("table", b'{"columns": ["a"], "rows": [[{}]]}', "rows.0.0"),
        ("table", b'{"columns": ["a"], "rows": [[NaN]]}', "is no table"),
        ("table", b'{"columns": ["a"], "rows": ' + b"[" * 50 + b"]" * 50 + b"}", "nested"),
        ("table", b'{"columns": ["a"], "rows": [' + b",".join([b"[1]"] * 1_001) + b"]}", "rows"),
        ("table", b"[" + b",".join([b"1"] * 60_000) + b"]", "values"),
    ],
)
def test_a_file_that_is_neither_image_nor_table_is_refused(kind: str, content: bytes, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        shape_of(kind, content)


@pytest.mark.parametrize(
    ("content", "shape"),
    [
        (PNG, ("image/png", 6, 4)),
        (
            b"\xff\xd8\xff\xe0\0\x04AB\xff\xff\xc2\0\x0b\x08" + struct.pack(">HH", 4, 6),
            ("image/jpeg", 6, 4),
        ),
        (b"RIFF\0\0\0\0WEBPVP8X" + b"\0" * 8 + b"\5\0\0\3\0\0", ("image/webp", 6, 4)),
        (b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + (5 | 3 << 14).to_bytes(9, "little"), ("image/webp", 6, 4)),
        (
            b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 6, 4),
            ("image/webp", 6, 4),
        ),
    ],
)
def test_size_of_an_image_is_that_of_its_header(content: bytes, shape: tuple[str, int, int]) -> None:
    assert shape_of("image", content) == shape


def test_a_whole_table_has_room() -> None:
    rows = [["x" * 20, *range(49)] for _ in range(1_000)]
    table = {"columns": [f"column {number}" for number in range(50)], "rows": rows}
    assert shape_of("table", json.dumps(table).encode()) == ("application/json", 50, 1_000)


def test_png_of_the_client_is_an_image_of_the_server() -> None:
    import numpy as np

    assert shape_of("image", png_of(np.zeros((4, 6, 3), np.uint8))) == ("image/png", 6, 4)
