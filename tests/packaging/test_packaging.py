"""What the wheel contains, and what the files at the root say of it."""

import re
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import backend
from tests import constraints, licences

ROOT = Path(__file__).parents[2]


def build(project: Path, folder: Path) -> zipfile.ZipFile:
    # As a build front end does, but without an environment of its own, and leaving nothing in the checkout.
    # Built here and not by `make ready`: it takes seconds, and a stored wheel could lack a changed file.
    command = [sys.executable, "setup.py", "--quiet", "egg_info", f"--egg-base={folder}", "build"]
    command += [f"--build-base={folder / 'build'}", "bdist_wheel", f"--dist-dir={folder}"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [path] = folder.glob("*.whl")
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    with build(ROOT, tmp_path_factory.mktemp("wheel")) as archive:
        yield archive


@pytest.mark.long
@pytest.mark.service
def test_wheel_contains_pages_migrations_data_and_licences(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    migrations = {path.name for path in (ROOT / "alembic/versions").glob("*.py")}
    assert {f"backend/migrations/versions/{name}" for name in migrations} <= names
    assert {"backend/migrations/env.py", "backend/pages/index.html"} <= names
    pages = wheel.read("backend/pages/index.html").decode()
    scripts = re.findall(r'src="/(assets/[^"]+\.js)"', pages)
    assert scripts
    assert {"backend/help/index.html", "backend/help/reference/glossary.html"} <= names
    assert {f"backend/pages/{script}" for script in scripts} <= names
    demo = [path for path in (ROOT / "callboard_cli/demo_run").rglob("*") if path.is_file()]
    data = [*demo, *(ROOT / "backend").rglob("*.csv"), *(ROOT / "workers").rglob("*.json")]
    assert {str(path.relative_to(ROOT)) for path in data} <= names
    version = backend.__version__
    assert f"callboard-{version}.dist-info/licenses/LICENSE" in names
    assert f"callboard-{version}.dist-info/licenses/THIRD-PARTY.md" in names


@pytest.mark.long
@pytest.mark.service
def test_server_requires_the_client_of_its_own_version(wheel: zipfile.ZipFile) -> None:
    [name] = [name for name in wheel.namelist() if name.endswith("/METADATA")]
    required = re.findall(r"^Requires-Dist: (callboard-client.*)$", wheel.read(name).decode(), re.M)
    assert required == [f"callboard-client=={backend.__version__}"]


@pytest.mark.long
@pytest.mark.service
def test_client_is_a_wheel_of_its_own_that_shares_no_file_with_the_server(
    wheel: zipfile.ZipFile, tmp_path: Path
) -> None:
    with build(ROOT / "client", tmp_path) as client:
        names = set(client.namelist())
        info = f"callboard_client-{backend.__version__}.dist-info"
        assert {name.partition("/")[0] for name in names} == {"callboard", info}
        sources = {
            str(path.relative_to(ROOT / "client")) for path in (ROOT / "client").rglob("callboard/**/*.py")
        }
        assert sources | {"callboard/py.typed"} <= names
        assert f"{info}/licenses/LICENSE" in names
        metadata = client.read(f"{info}/METADATA").decode()
    required = re.findall(r"^Requires-Dist: (.+)$", metadata, re.M)
    assert [requirement for requirement in required if "extra ==" not in requirement] == [
        "httpx>=0.23.1",
        "numpy>=1.21",
    ]
    assert names & set(wheel.namelist()) == set()
    server = wheel.read(f"callboard-{backend.__version__}.dist-info/METADATA").decode()
    assert "Requires-Dist: callboard-client" in server


@pytest.mark.long
@pytest.mark.service
def test_wheel_installs_five_packages_and_the_commands_of_the_server(wheel: zipfile.ZipFile) -> None:
    info = f"callboard-{backend.__version__}.dist-info"
    folders = {name.partition("/")[0] for name in wheel.namelist()} - {info}
    assert folders == {
        "backend",
        "callboard_algorithms",
        "callboard_cli",
        "callboard_environments",
        "workers",
    }
    points = wheel.read(f"{info}/entry_points.txt").decode().split()
    assert points == ["[callboard.commands]", "server", "=", "callboard_cli.main:app"]
    assert "License-Expression: MIT" in wheel.read(f"{info}/METADATA").decode()


def test_every_package_under_a_reciprocal_licence_is_listed() -> None:
    page = (ROOT / "THIRD-PARTY.md").read_text("utf-8")
    assert {name for name in licences.reciprocal() if f"`{name}`" not in page} == set()
    assert "ale-py" in licences.reciprocal()


def test_every_wheel_that_contains_ffmpeg_is_listed_as_such() -> None:
    """No metadata names libraries inside a wheel."""
    packages = Path(sysconfig.get_paths()["platlib"])
    with_ffmpeg = {path.parent.name.removesuffix(".libs") for path in packages.glob("*.libs/libavcodec*")}
    page = (ROOT / "THIRD-PARTY.md").read_text("utf-8")
    listed = re.findall(r"^\| `([\w-]+)` \|.*wheel contains FFmpeg", page, re.M)
    assert with_ffmpeg == {name.replace("-", "_") for name in listed} == {"av", "opencv_python_headless"}


def test_every_named_requirement_is_pinned() -> None:
    pinned = {
        line.partition("==")[0].lower().replace("_", "-")
        for line in constraints.FILE.read_text().splitlines()
    }
    named = {re.split(r"[\[<>=~! ]", requirement)[0].lower() for requirement in constraints.requirements()}
    assert named - pinned == set()


def test_constraints_are_written_from_the_report_without_local_versions() -> None:
    names = {"torch": "2.13.0+cpu", "Mako": "1.3"}
    report = {"install": [{"metadata": {"name": name, "version": v}} for name, v in names.items()]}
    assert constraints.pinned(report).splitlines()[1:] == ["Mako==1.3", "torch==2.13.0"]


def test_changelog_has_its_three_headings_once_for_each_version() -> None:
    versions = (ROOT / "CHANGELOG.md").read_text("utf-8").split("\n## ")[1:]
    assert versions[0].startswith("[Unreleased]")
    for version in versions:
        headings = re.findall(r"^### (\w+)$", version, re.M)
        assert headings == [name for name in ("Added", "Changed", "Fixed") if name in headings]
