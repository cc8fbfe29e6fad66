"""The bundle: what it consists of, and how its script starts."""

import fcntl
import os
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from backend import __version__
from benchmarks.gpu import bundle
from benchmarks.gpu.packages import BUNDLED

pytestmark = pytest.mark.long


def test_wheels_are_pinned_by_the_constraints() -> None:
    text = "# Pinned.\nFarama_Notifications==0.0.6\npydantic==2.14.3\npydantic_core==2.50.4\n"
    assert bundle.pin(("pydantic-core", "farama-notifications"), text) == [
        "pydantic_core==2.50.4",
        "Farama_Notifications==0.0.6",
    ]
    with pytest.raises(ValueError, match="no version of ale-py, gymnasium"):
        bundle.pin(("ale-py", "pydantic", "gymnasium"), text)
    assert len(bundle.pin(BUNDLED, (bundle.ROOT / "constraints.txt").read_text())) == len(BUNDLED)


def test_version_wheel_is_the_metadata_of_a_distribution(tmp_path: Path) -> None:
    bundle.write_version_wheel(tmp_path)
    [path] = tmp_path.iterdir()
    with zipfile.ZipFile(path) as wheel:
        wheel.extractall(tmp_path)
    [distribution] = metadata.distributions(name="callboard", path=[str(tmp_path)])
    assert distribution.version.startswith(f"{__version__}+")
    assert path.name == f"callboard-{distribution.version}-py3-none-any.whl"


def test_bundle_replaces_a_former_one_and_is_bounded_in_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size_bytes = 1000

    def download(folder: Path, python: str) -> None:
        (folder / f"x-{python}.whl").write_bytes(bytes(size_bytes))

    monkeypatch.setattr(bundle, "download_wheels", download)
    folder = tmp_path / "gpu-bundle"
    bundle.build(folder, "3.11")
    bundle.build(folder, "3.12")
    assert [path.name for path in (folder / "wheels").glob("x*")] == ["x-3.12.whl"]
    assert os.access(folder / "run", os.X_OK)
    assert (folder / "source/workers/engine/__main__.py").is_file()
    size_bytes = 36 * 2**20
    with pytest.raises(ValueError, match="MiB; a bundle may be 35 MiB"):
        bundle.build(folder, "3.12")
    (tmp_path / "file").touch()
    (folder / "results").mkdir()
    for other in (tmp_path, folder):
        kept = sorted(other.iterdir())
        with pytest.raises(ValueError, match="is no part of a bundle"):
            bundle.build(other, "3.12")
        assert sorted(other.iterdir()) == kept


@pytest.mark.service
def test_script_names_what_is_missing_before_it_installs_anything(tmp_path: Path) -> None:
    shutil.copy(bundle.ROOT / "benchmarks/gpu/run", tmp_path / "run")
    (tmp_path / "source").symlink_to(bundle.ROOT)
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels/x-1-cp39-cp39-manylinux_2_28_x86_64.whl").touch()
    path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"])
    for folder, problem in (("wheels", "the wheels are for Python 3.9"), ("source", "missing: the wheels")):
        done = subprocess.run(
            [tmp_path / "run", "--device", "cpu", "--out", "out", "--wheels", folder],
            cwd=tmp_path,
            env={"PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(problem)
    assert not list(tmp_path.glob("*/.site"))


PYTHON = """#!/bin/sh
case "$*" in
  "-m benchmarks.gpu.packages "*) echo "$3" ;;
  "-m benchmarks.gpu "*) echo started ;;
  *) exec "%s" "$@" ;;
esac
"""
"""A `python3` without the checks and the stages, which need the packages of a GPU host."""


def start(folder: Path, **environment: str) -> tuple[int, str, str]:
    """Start a bundle's script; returns its exit code and its output."""
    path = os.pathsep.join([str(folder / "bin"), "/usr/bin", "/bin"])
    done = subprocess.run(
        [folder / "run", "--out", "out"],
        cwd=folder,
        env={"PATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A bundle with one wheel, and the stand-in for `python3` in its folder `bin`."""
    shutil.copy(bundle.ROOT / "benchmarks/gpu/run", tmp_path / "run")
    for name in ("source", "wheels", "bin"):
        (tmp_path / name).mkdir()
    bundle.write_version_wheel(tmp_path / "wheels")
    (tmp_path / "bin/python3").write_text(PYTHON % sys.executable)
    (tmp_path / "bin/python3").chmod(0o755)
    return tmp_path


@pytest.mark.service
def test_script_installs_in_spite_of_the_constraints_of_the_machine(host: Path) -> None:
    (host / "constraints.txt").write_text("callboard==0.0.1\n")
    assert start(host, PIP_CONSTRAINT=str(host / "constraints.txt")) == (0, "started\n", "")
    assert list((host / "wheels/.site").glob("callboard-*"))


@pytest.mark.service
def test_script_ends_with_2_if_it_cannot_install(host: Path) -> None:
    (host / "wheels/x-1-py3-none-any.whl").touch()
    code, output, errors = start(host)
    assert (code, output) == (2, "")
    assert "x-1-py3-none-any.whl" in errors


@pytest.mark.service
def test_script_leaves_wheels_alone_that_another_run_uses(host: Path) -> None:
    (host / "wheels/.site").mkdir()
    lock = os.open(host / "wheels", os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, output, errors = start(host)
    finally:
        os.close(lock)
    assert (code, output) == (2, "")
    assert "another run uses these wheels" in errors
    assert (host / "wheels/.site").is_dir()


@pytest.mark.service
def test_script_names_a_python_that_is_too_old(host: Path) -> None:
    (host / "bin/python3").write_text("#!/bin/sh\nexit 1\n")
    code, output, errors = start(host)
    assert (code, output) == (2, "")
    assert errors.startswith("missing: a python3 of version 3.11 or later")
