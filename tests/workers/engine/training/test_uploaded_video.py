"""Videos that scripts have sent, encoded and decoded again."""

import errno
import json
import subprocess
import sys
import zipfile
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.waiting import PATIENCE_S
from workers.engine.training.uploaded_video import InvalidVideoError, encode
from workers.engine.training.video import VideoFile

FRAMES = np.stack([np.full((48, 64, 3), 20 * t, np.uint8) for t in range(10)])


def _movie(path: Path, frames: NDArray[np.uint8] = FRAMES, codec: str = "mpeg4", fps: int = 10) -> Path:
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=Fraction(fps))
        assert isinstance(stream, av.VideoStream)
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = "yuv420p" if codec == "mpeg4" else "rgb8"
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
    return path


def _encode_in_process(sent: Path, *options: str) -> tuple[dict[str, Any], Path]:
    """The engine's task."""
    out = sent.with_name("out.mp4")
    command = [sys.executable, "-m", "workers.engine", "encode", str(sent.parent), "--upload", str(sent)]
    command += ["--out", str(out), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer, out


def _decoded(path: Path) -> list[NDArray[np.uint8]]:
    with av.open(str(path)) as container:
        assert container.streams.video[0].codec_context.name == "h264"
        return [np.asarray(frame.to_ndarray(format="rgb24"), np.uint8) for frame in container.decode(video=0)]


@pytest.mark.parametrize("suffix", ["mp4", "avi", "gif"])
def test_video_file_is_encoded_as_h264(tmp_path: Path, suffix: str) -> None:
    sent = _movie(tmp_path / f"sent.{suffix}", codec="gif" if suffix == "gif" else "mpeg4")
    sent = sent.rename(tmp_path / "sent")  # the name must not matter
    out = tmp_path / "out.mp4"
    answer = encode(sent, out, "file", None)
    assert answer == {"n_frames": 10, "duration_s": 1.0}
    frames = _decoded(out)
    assert [frame.shape for frame in frames] == [(288, 384, 3)] * 10, "small frames are enlarged"
    for t in (0, 9):
        assert abs(float(frames[t].mean()) - 20 * t) < 25


@pytest.mark.service
def test_frames_are_encoded_as_h264_in_a_process(tmp_path: Path) -> None:
    sent = tmp_path / "sent"
    with sent.open("wb") as file:
        np.savez_compressed(file, frames=FRAMES)
    answer, out = _encode_in_process(sent, "--form", "frames", "--fps", "5")
    assert answer == {"n_frames": 10, "duration_s": 2.0}
    assert len(_decoded(out)) == 10


def _truncated(path: Path) -> bytes:
    return _movie(path.with_suffix(".mp4")).read_bytes()[:200]


@pytest.mark.parametrize(
    ("form", "content", "error"),
    [
        ("file", b"this is not a video, but some text", "not an MP4"),
        ("file", b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n", "not an MP4"),
        ("file", b"ffconcat version 1.0\nfile /etc/passwd\n", "not an MP4"),
        ("file", b"\0\0\0\x18ftypisom" + bytes(500), "cannot be read"),
        ("file", _truncated, "cannot be read"),
        ("frames", b"PK not an archive", "cannot be read"),
        ("frames", {"frames": np.zeros((2, 4, 4, 3), np.uint8)}, "pixels"),
        ("frames", {"frames": np.zeros((2, 32, 32), np.uint8)}, "shape"),
        ("frames", {"frames": np.zeros((2, 32, 32, 3))}, "uint8"),
        ("frames", {"frames": np.array([{}], object)}, "uint8"),
        ("frames", {"other": np.zeros(3)}, "cannot be read"),
    ],
)
def test_invalid_video_is_reported(tmp_path: Path, form: str, content: Any, error: str) -> None:
    sent = tmp_path / "sent"
    if callable(content):
        content = content(sent)
    if isinstance(content, bytes):
        sent.write_bytes(content)
    else:
        with sent.open("wb") as file:
            np.savez_compressed(file, **content)
    out = tmp_path / "out.mp4"
    with pytest.raises(InvalidVideoError, match=error) as raised:
        encode(sent, out, form, None)
    assert str(tmp_path) not in str(raised.value)  # it is shown on the run's page
    assert not list(tmp_path.glob("out*"))


def _npy(shape: tuple[int, ...], data: bytes) -> bytes:
    file = BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
    return file.getvalue() + data


def test_size_of_frames_is_checked_before_any_is_read(tmp_path: Path) -> None:
    """The header and the member that are checked are those that are read."""
    small, sent = FRAMES[:1], tmp_path / "sent"
    with zipfile.ZipFile(sent, "w") as archive:
        archive.writestr("frames.npy", _npy(small.shape, small.tobytes()))
        archive.writestr("frames", _npy((10**6, 512, 512, 3), b""))
    assert encode(sent, tmp_path / "out.mp4", "frames", None)["n_frames"] == 1
    for shape, data, error in (
        ((10**6, 512, 512, 3), b"", "more than"),
        ((2**40, 2**40, 2**40, 3), b"", "more than"),
        ((2, *FRAMES.shape[1:]), small.tobytes(), "incomplete"),
    ):
        with zipfile.ZipFile(sent, "w") as archive:
            archive.writestr("frames.npy", _npy(shape, data))
        with pytest.raises(InvalidVideoError, match=error):
            encode(sent, tmp_path / "other.mp4", "frames", None)


def test_frames_in_fortran_order_are_encoded(tmp_path: Path) -> None:
    sent = tmp_path / "sent"
    with sent.open("wb") as file:
        np.savez(file, frames=np.asfortranarray(FRAMES))
    assert encode(sent, tmp_path / "out.mp4", "frames", None)["n_frames"] == len(FRAMES)


@pytest.mark.parametrize("shape", [(16, 800), (1_200, 24)])
def test_strip_is_not_enlarged_beyond_the_longest_side(tmp_path: Path, shape: tuple[int, int]) -> None:
    sent = tmp_path / "sent"
    with sent.open("wb") as file:
        np.savez_compressed(file, frames=np.zeros((2, *shape, 3), np.uint8))
    encode(sent, tmp_path / "out.mp4", "frames", None)
    assert [frame.shape for frame in _decoded(tmp_path / "out.mp4")] == [(*shape, 3)] * 2


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_full_disk_is_not_reported_as_an_invalid_video(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def append(*_: object) -> None:
        raise av.FFmpegError(number, "no space")

    monkeypatch.setattr(VideoFile, "append", append)
    with pytest.raises(av.FFmpegError):
        encode(_movie(tmp_path / "sent.mp4"), tmp_path / "out.mp4", "file", None)


@pytest.mark.service
@pytest.mark.parametrize(
    ("bound", "error"),
    [
        ("MAX_CPU_S = 0", "processor time"),
        ("MAX_ENCODED_BYTES = 20_000", "20,000 bytes"),
        ("MAX_PIXELS = 100 * 240 * 320", "7,680,000 pixels"),
    ],
)
def test_processor_time_and_size_of_an_encoding_are_bounded(tmp_path: Path, bound: str, error: str) -> None:
    sent = tmp_path / "sent"
    rng = np.random.default_rng(1)
    with sent.open("wb") as file:
        np.savez(file, frames=rng.integers(0, 255, (300, 240, 320, 3), np.uint8))
    name, value = bound.split(" = ")
    code = (
        "import sys; from pathlib import Path; from workers.engine.training import uploaded_video\n"
        f"uploaded_video.{name} = {value}\n"
        "print(uploaded_video.report(Path(sys.argv[1]), Path(sys.argv[2]), 'frames', None))"
    )
    command = [sys.executable, "-c", code, str(sent), str(tmp_path / "out.mp4")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert error in json.loads(done.stdout)["error"]
    assert not list(tmp_path.glob("out*"))


@pytest.mark.service
def test_engine_reports_an_invalid_video_without_failing(tmp_path: Path) -> None:
    sent = tmp_path / "sent"
    sent.write_bytes(b"text")
    answer, out = _encode_in_process(sent, "--form", "file")
    assert "not an MP4" in answer["error"]
    assert not out.exists()
