"""Histograms, images and tables that a script logs, as the service keeps and draws them."""

import io
import itertools
import json
import struct
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import callboard
from callboard.imports.wandb import Reader
from callboard.media import Histogram, Image, Table, png_of
from tests.client.support import Intermittent, Target, rows_of


def kept(target: Target, run_id: str | None) -> dict[tuple[str, str], list[int]]:
    """Where the items of a run are, by kind and metric."""
    answer = target.client.get(f"/api/v1/runs/{run_id}/media").raise_for_status().json()
    return {(item["kind"], item["metric"]): item["agent_steps"] for item in answer["items"]}


def content(target: Target, run_id: str | None, kind: str) -> tuple[dict[str, Any], Any]:
    """The only item of a kind, and its file."""
    items = target.client.get(f"/api/v1/runs/{run_id}/media").raise_for_status().json()["items"]
    [media_id] = next(item["ids"] for item in items if item["kind"] == kind)
    about = target.client.get(f"/api/v1/media/{media_id}").raise_for_status().json()
    return about, target.client.get(f"/api/v1/media/{media_id}/file")


def decoded(png: bytes) -> Any:
    """The pixels of a PNG file without filters."""
    width, height, depth, colour = struct.unpack(">IIBB", png[16:26])
    assert depth == 8
    length = struct.unpack(">I", png[33:37])[0]
    channels = {0: 1, 4: 2, 2: 3, 6: 4}[colour]
    lines = np.frombuffer(zlib.decompress(png[41 : 41 + length]), np.uint8).reshape(height, -1)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, channels)


@pytest.mark.service
def test_what_is_logged_is_kept_and_drawn(target: Target) -> None:
    pixels = np.arange(3 * 8 * 6, dtype=np.uint8).reshape(8, 6, 3)
    with callboard.init(algorithm="mine", environment="CartPole-v1") as run:
        for step in (100, 200):
            run.log({"policy/actions": Histogram([0, 1, 1, 3]), "loss/policy": 0.5}, agent_steps=step)
        run.log({"policy/values": Histogram(np.linspace(0.0, 1.0, 1_000))}, agent_steps=200)
        run.log({"observation": Image(pixels, "a state")}, agent_steps=200)
        run.log({"samples": Table(["action", "note"], [[0, "left"], [1.5, float("nan")]])}, agent_steps=200)
    assert run.n_dropped == 0
    assert kept(target, run.id) == {
        ("histogram", "policy/actions"): [100, 200],
        ("histogram", "policy/values"): [200],
        ("image", "observation"): [200],
        ("table", "samples"): [200],
    }
    about, file = content(target, run.id, "image")
    assert (about["width"], about["height"], about["caption"]) == (6, 8, "a state")
    assert file.headers["Content-Type"] == "image/png"
    assert np.array_equal(decoded(file.content), pixels)
    _, table = content(target, run.id, "table")
    assert table.json() == {"columns": ["action", "note"], "rows": [[0, "left"], [1.5, "NaN"]]}
    query = {"run": run.id, "metric": "policy/actions"}
    shares = target.client.get("/api/v1/figures/distribution", params=query).raise_for_status().json()
    assert [(trace["name"], trace["y"]) for trace in shares["data"]] == [
        ("0", [0.25, 0.25]),
        ("1", [0.5, 0.5]),
        ("2", [0.0, 0.0]),
        ("3", [0.25, 0.25]),
    ]
    for form in ("csv", "matplotlib"):
        for metric in ("policy/actions", "policy/values"):
            query = {"run": run.id, "metric": metric, "format": form}
            target.client.get("/api/v1/figures/distribution", params=query).raise_for_status()
            target.client.get("/api/v1/figures/histogram", params=query).raise_for_status()


@pytest.mark.service
def test_what_was_logged_without_a_server_is_sent_later(
    target: Target, intermittent: Intermittent, spools: Path, tmp_path: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("callboard.background.LAST_TRIES", 0)
        run = callboard.init(algorithm="mine", environment="CartPole-v1")
        run.log({"a": Histogram([1, 2]), "b": Image(np.zeros((4, 4))), "c": Table(["x"])}, agent_steps=5)
        run.close(timeout_s=20)
    [folder] = spools.iterdir()
    assert rows_of(folder, tmp_path / "copy") == {"histograms": 1, "media": 2, "state": 0}
    with intermittent.running():
        assert callboard.sync().n_remaining == 0
    [stored] = target.runs()
    assert kept(target, stored["id"]) == {("histogram", "a"): [5], ("image", "b"): [5], ("table", "c"): [5]}


@pytest.mark.service
def test_what_is_after_a_rewind_is_set_aside(target: Target) -> None:
    with callboard.init(algorithm="mine", environment="CartPole-v1") as run:
        for step in (1, 2, 3):
            run.log({"a": Histogram([step]), "b": Image(np.zeros((4, 4)))}, agent_steps=step)
    with callboard.init(id=run.id, rewind_to=1) as again:
        again.log({"a": Histogram([5])}, agent_steps=2)
    assert kept(target, run.id) == {("histogram", "a"): [1, 2], ("image", "b"): [1]}


@pytest.mark.service
def test_what_cannot_be_kept_is_counted(target: Target, tmp_path: Path) -> None:
    (tmp_path / "page.png").write_bytes(b"<svg onload='alert(1)'/>")
    disguised = tmp_path / "disguised.png"
    disguised.write_bytes(b"\x89PNG\r\n\x1a\n" + b"<svg onload='alert(1)'/>")
    with callboard.init(algorithm="mine", environment="CartPole-v1") as run:
        run.log({"a": Histogram([float("nan")]), "b": Histogram([])}, agent_steps=1)
        run.log(
            {"c": Image(tmp_path / "page.png"), "d": Image("nowhere.png"), "e": Image([1, 2])}, agent_steps=1
        )
        run.log({"f": Table(["x"], [[1, 2]]), "g": Table()}, agent_steps=1)
        assert run.n_dropped == 7
        run.log({"h": Image(disguised), "loss": 1.0}, agent_steps=1)  # the server reads its header
    assert run.n_dropped == 8
    assert not kept(target, run.id)
    assert "loss" in target.points(run.id)


@pytest.mark.parametrize(
    ("values", "edges", "counts"),
    [
        ([3, 3, 5], [2.5, 3.5, 4.5, 5.5], [2, 0, 1]),
        ([True, False, True], [-0.5, 0.5, 1.5], [1, 2]),
        (np.array([2**63], np.uint64), None, [1]),
        ([0.5, 0.5], None, [2]),
        ([0.0], None, [1]),
        ([1e-320, 5.0], None, [1, *[0] * 62, 1]),
        ([-1e308, 1e308], "a histogram needs values whose range is finite", None),
    ],
)
def test_bins_of_values(values: Any, edges: Any, counts: Any) -> None:
    if isinstance(edges, str):
        with pytest.raises(ValueError, match=edges):
            Histogram(values).bins()
        return
    given_edges, given_counts = Histogram(values).bins()
    assert given_counts == counts
    assert all(low < high for low, high in itertools.pairwise(given_edges))
    assert edges is None or given_edges == edges


def test_counted_bins_are_joined_without_losing_values() -> None:
    edges, counts = Histogram(counts=np.ones(1_000), edges=np.arange(1_001)).bins()
    assert len(counts) == 64
    assert sum(counts) == pytest.approx(1_000)
    assert (edges[0], edges[-1]) == (0, 1_000)


@pytest.mark.parametrize(
    ("shape", "drawn"),
    [
        ((84, 80), (84, 80, 1)),
        ((3, 84, 80), (84, 80, 3)),
        ((84, 80, 4), (84, 80, 4)),
        ((4, 84, 80), (84, 320, 1)),  # stacked frames
        ((1, 84, 80), (84, 80, 1)),
    ],
)
def test_pixels_by_their_shape(shape: tuple[int, ...], drawn: tuple[int, ...], tmp_path: Path) -> None:
    Image(np.random.default_rng(1).random(shape)).sent().write(tmp_path / "image")
    assert decoded((tmp_path / "image").read_bytes()).shape == drawn


def test_an_image_that_is_too_large_has_fewer_pixels(tmp_path: Path) -> None:
    changes: list[str] = []
    noise = np.random.default_rng(1).integers(0, 256, (1_200, 5_000, 3), np.uint8)
    sent = Image(noise).sent(lambda what, details: changes.append(details))
    sent.write(tmp_path / "image")
    assert sent.n_bytes <= 2 * 2**20
    assert len(changes) == 1
    assert max(decoded((tmp_path / "image").read_bytes()).shape) <= 4_096


def test_png_is_read_by_another_library() -> None:
    av = pytest.importorskip("av")
    pixels = np.random.default_rng(1).integers(0, 256, (32, 48, 3), np.uint8)
    with av.open(io.BytesIO(png_of(pixels))) as container:
        [frame] = container.decode(video=0)
    assert np.array_equal(frame.to_ndarray(format="rgb24"), pixels)


@pytest.mark.service
def test_writer_logs_histograms_images_and_figures(target: Target) -> None:
    torch, pyplot = pytest.importorskip("torch"), pytest.importorskip("matplotlib.pyplot")
    with callboard.SummaryWriter("runs/CartPole-v1__mine__1__1700000000") as writer:
        writer.add_histogram("weights", torch.linspace(0, 1, 1_000, requires_grad=True), 1)
        writer.add_histogram_raw("raw", -1.0, 3.0, 6, 0, 0, [-2.0, 0.0, 2.0, 1.8e308], [0, 1, 3, 2], 1)
        writer.add_image("state", torch.rand(3, 8, 6), 2)
        writer.add_images("states", np.zeros((2, 8, 6, 3), np.uint8), 2, dataformats="NHWC")
        writer.add_figure("figure", pyplot.figure(figsize=(1, 1)), 3)
        assert not pyplot.get_fignums()
    assert (writer.n_not_kept, writer.run.n_dropped) == ({}, 0)
    assert kept(target, writer.run.id) == {
        ("histogram", "raw"): [1],
        ("histogram", "weights"): [1],
        ("image", "figure"): [3],
        ("image", "state"): [2],
        ("image", "states"): [2],
    }
    query = {"run": writer.run.id, "metric": "raw"}
    figure = target.client.get("/api/v1/figures/distribution", params=query).raise_for_status().json()
    assert [figure["data"][0]["y"], figure["data"][1]["y"]] == [[-1.0], [3.0]]


@pytest.mark.parametrize(
    ("low", "high", "limits", "counts"),
    [
        (0.0, 0.0, [0.0, 1e-12], [5, 0]),
        (1.0, 1.0, [1.0], [2]),
        (-1.0, 1.0, [0.0, 1.0], [1, 1]),
        (0.5, 0.7, [0.4, 0.6, 0.9], [0, 2, 3]),
    ],
)
def test_buckets_of_tensorboard_are_bins(
    low: float, high: float, limits: list[float], counts: list[float]
) -> None:
    edges, bins = Histogram.of_buckets(low, high, limits, counts).bins()
    assert sum(bins) == sum(counts)
    assert edges[0] <= low <= high <= edges[-1] or len(bins) == 1


def test_histograms_and_images_of_wandbs_files_are_imported(tmp_path: Path) -> None:
    (tmp_path / "files" / "media").mkdir(parents=True)
    (tmp_path / "files" / "media" / "state.png").write_bytes(png_of(np.zeros((2, 2, 3), np.uint8)))
    (tmp_path / "secret.png").write_bytes(png_of(np.zeros((2, 2, 3), np.uint8)))
    reader = Reader(tmp_path / "run-a.wandb")
    image = {"_type": "image-file", "path": "media/state.png"}
    outside = {"_type": "image-file", "path": "../secret.png"}
    packed = {"_type": "histogram", "values": [1, 2], "packedBins": {"min": 0, "size": 0.5, "count": 2}}
    for row in (
        {"whole": {"_type": "histogram", "values": [1, 2], "bins": [0, 1, 2]}, "state": image},
        {"parts._type": "histogram", "parts.values": [3], "parts.bins": [0, 1], "outside": outside},
        {"packed": packed, "damaged": {"_type": "histogram", "values": "x", "bins": [0]}},
    ):
        items = [
            SimpleNamespace(nested_key=[], key=name, value_json=json.dumps(value))
            for name, value in row.items()
        ]
        record = SimpleNamespace(WhichOneof=lambda of: "history", history=SimpleNamespace(item=items))
        reader.add(record)
    log = reader.finished()
    imported = {medium.metric: medium.content for medium in log.media.values() if medium.kind == "histogram"}
    assert imported == {
        "whole": ([0, 1, 2], [1, 2]),
        "parts": ([0, 1], [3]),
        "packed": ([0, 0.5, 1], [1, 2]),
    }
    assert [(kind, metric, step) for kind, metric, step in log.media if kind == "image"] == [
        ("image", "state", 0)
    ]
    assert log.not_kept == {
        "images that are no PNG, JPEG or WebP of at most 2 MiB": 1,
        "histograms that are damaged or have no finite value": 1,
    }
