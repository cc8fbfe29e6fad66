"""The bundle: what it consists of, and how its script starts."""

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
