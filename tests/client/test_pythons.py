"""The client on every Python that it is for: a script logs, starts, reads and imports."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.client.support import Target
from tests.support import pythons
from tests.support.waiting import PATIENCE_S

CLIENT = Path(__file__).parents[2] / "client"

SCRIPT = """
import csv, math, pkgutil, importlib, sys
import numpy as np
import callboard
from callboard import SummaryWriter
import callboard.wandb as wandb
import callboard.imports

foreign = {"callboard.sb3", "callboard.wrappers"}  # they build on packages that a script brings
for package in (callboard, callboard.imports):
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if module.name not in foreign and not module.name.endswith("__main__"):
            importlib.import_module(module.name)

with callboard.init(name="first", algorithm="mine", environment="CartPole-v1", seed=2**40,
                    config={"lr": 0.1, "net": {"layers": [64, 64]}}) as run:
    for step in range(200):
        run.log({"loss/policy": 1 / (step + 1), "nan": math.nan}, agent_steps=step)
    run.episode(return_=200.0, length=200)
    run.video(np.zeros((8, 32, 32, 3), np.uint8), agent_steps=100)
    with open("model.pt", "wb") as file:
        file.write(bytes(3_000_000))
    run.checkpoint("model.pt", score=1.0)
    first = run.id

writer = SummaryWriter(comment="second")
writer.add_scalar("a/b", 1.5, 10)
writer.close()

run = wandb.init(project="p", config={"seed": 3, "env_id": "CartPole-v1"})
wandb.log({"global_step": 10, "x": 1.0})
wandb.finish()

server = callboard.connect()
read = server.run(first)
assert read.state == "finished", read.state
series = read.series("loss/policy")
assert len(series.value) == 200, len(series.value)
assert len(list(server.runs())) == 3
with open("log.csv", "w") as file:
    rows = csv.writer(file)
    rows.writerow(["step", "return"])
    rows.writerows([step, float(step)] for step in range(50))
print("whole", first)
"""


@pytest.mark.service
@pytest.mark.long
@pytest.mark.parametrize("version", pythons.VERSIONS)
def test_script_logs_reads_and_imports(version: str, target: Target, tmp_path: Path) -> None:
    python = pythons.interpreter(version)
    if python is None:
        pytest.skip(f"Python {version} could not be had: install python{version} with its venv")
    variables = os.environ | {"PYTHONPATH": str(CLIENT), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [python, *arguments],
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    assert run("-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip() == version
    [first] = re.findall(r"^whole (\S+)$", run("-W", "error", "-c", SCRIPT), re.M)
    assert "first" in run("-m", "callboard", "runs", "list")
    assert first in run("-m", "callboard", "runs", "show", first)
    run("-m", "callboard", "import", "csv", "log.csv", "--environment", "CartPole-v1")
    run("-m", "callboard", "sync")
    stored = target.runs()
    assert {item["state"] for item in stored} == {"finished"}
    assert len(stored) == 4
    assert target.run(first)["seed"] == 2**40
    assert len(target.points(first)["nan"]) == 200


def test_tested_pythons_are_those_that_the_client_names() -> None:
    project = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == f">={pythons.OLDEST}"
    named = [name.rpartition(" ")[2] for name in project["classifiers"] if "Python :: 3." in name]
    assert tuple(named) == pythons.VERSIONS
    assert f"{sys.version_info[0]}.{sys.version_info[1]}" in pythons.VERSIONS
