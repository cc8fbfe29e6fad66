"""What a machine may lack, and what then works nevertheless."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from backend.specs import extras
from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS

ROOT = Path(__file__).parents[3]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
ABSENT = "import sys; sys.modules |= dict.fromkeys(('Box2D', 'envpool', 'pyarrow', 'ray'))"
"""Makes a Python without the extras' packages of one that has them."""


def test_hosts_lack_what_they_do_not_report() -> None:
    assert extras.missing_extras({}) == []
    assert extras.missing_extras({"torch": "2", "ray": "2", "pyarrow": "1"}) == ["envpool", "racing"]
    assert not extras.missing_everywhere("racing", [])
    assert extras.missing_everywhere("racing", [{"torch": "2"}, {"torch": "2", "ray": "2"}])
    assert not extras.missing_everywhere("racing", [{"torch": "2"}, {"Box2D": "2"}])


def test_what_needs_an_extra_names_one_that_there_is() -> None:
    assert set(extras.PACKAGES) <= set(EXTRAS)
    needed = {env.id: env.extra for env in ENVIRONMENTS.values() if env.extra}
    needed |= {algorithm.id: algorithm.extra for algorithm in ALGORITHMS.values() if algorithm.extra}
    assert needed == {
        **{env.id: "racing" for env in ENVIRONMENTS.values() if env.family == "racing"},
        "CarRacing-v3": "envpool",
        "gorila_dqn": "gorila",
    }


def test_make_tries_the_requirements_of_these_extras() -> None:
    [line] = re.findall(r"^OPTIONAL := (.+)$", (ROOT / "Makefile").read_text(), re.M)
    tried = dict(pair.split("=") for pair in line.split())
    assert {name: [requirement] for name, requirement in tried.items()} == {
        name: EXTRAS[name] for name in extras.PACKAGES if name != "envpool"
    }


@pytest.mark.service
def test_service_command_line_and_worker_start_without_the_extras() -> None:
    modules = "backend.app, callboard_cli.main, workers.celery_app, workers.engine.methods.registry"
    code = f"{ABSENT}; import {modules}; from workers import host_facts; print(*host_facts.environments())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {env.id for env in ENVIRONMENTS.values() if env.extra is None}


@pytest.mark.service
@pytest.mark.parametrize(
    ("algorithm", "environment", "message"),
    [
        ("gorila_dqn", "CartPole-v1", "algorithm: gorila_dqn needs ray: pip install 'callboard[gorila]'"),
        ("a3c", "Racing-Slow-v0", "environment: Racing-Slow-v0 needs Box2D: pip install 'callboard[racing]'"),
    ],
)
def test_train_names_the_extra_in_one_line(
    algorithm: str, environment: str, message: str, tmp_path: Path
) -> None:
    code = f"{ABSENT}; from callboard_cli.main import app; app()"
    command = [sys.executable, "-c", code, "train", "--algorithm", algorithm, "--environment", environment]
    variables = os.environ | {"CALLBOARD_HOME": str(tmp_path)}
    done = subprocess.run(
        [*command, "--agent-steps", "10"], env=variables, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (2, f"callboard: {message}\n")


def wheel(folder: Path, name: str, version: str) -> None:
    """Write a wheel of an empty package."""
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}.py", "")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


@pytest.mark.service
@pytest.mark.long
def test_make_installs_what_has_a_wheel_and_names_the_rest(tmp_path: Path) -> None:
    pins = dict(
        line.split("==")
        for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()
        if "==" in line
    )
    (tmp_path / "index").mkdir()
    wheel(tmp_path / "index", "ray", pins["ray"])
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    pip = f"{sys.executable} -m pip --python {tmp_path}/venv/bin/python --quiet --disable-pip-version-check"
    variables = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "PYTHONPATH")}
    done = subprocess.run(
        ["make", "--no-print-directory", "optional", f"VENV={tmp_path}/venv", f"PIP={pip}"],
        cwd=ROOT,
        env=variables | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "index")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    python = re.escape(f"CPython {sys.version.split()[0]}")
    lines = [
        rf"callboard\[{name}\] is left out: {extras.PACKAGES[name]} has no wheel for {python}\n"
        for name in ("parquet", "racing")
    ]
    assert re.fullmatch("".join(lines), done.stdout), done.stdout
