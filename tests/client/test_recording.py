"""A script's run says where it came from, what it printed and what it used, without secrets."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import callboard
from callboard.limits import MAX_DIFF_BYTES, MAX_OUTPUT_CHARACTERS
from callboard.output import Output
from callboard.provenance import masked
from callboard.usage import Usage, gpu_metrics
from tests.client.support import Target

pytestmark = pytest.mark.service

ROOT = Path(__file__).parents[2]
SECRET = "hunter2"

SCRIPT = """
import os, sys
import callboard, callboard.recording
callboard.recording.INTERVAL_S = 0.05
run = callboard.init(algorithm="a", environment="e")
print("first")
sys.stderr.write("second\\n")
run.log({"a/b": 1.0}, agent_steps=7)
usage = callboard.recording.Recorder._add_usage
import threading
measured = threading.Event()
callboard.recording.Recorder._add_usage = lambda self, metrics: (usage(self, metrics), measured.set())
assert measured.wait(60)
print("x" * 100_000)
raise ValueError("the end")
"""


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with the script and uncommitted changes, some of them secret."""
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    for name in ("lib.py", ".env", "server.pem", "api_key.txt"):
        (folder / name).write_text("a = 1\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "a")
    (folder / "lib.py").write_text("a = 2\n")
    for name in (".env", "server.pem", "api_key.txt"):
        (folder / name).write_text(f"a = '{SECRET}'\n")
    return folder


def run_script(folder: Path, *arguments: str, **variables: str) -> None:
    done = subprocess.run(
        [sys.executable, "train.py", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT / "client")} | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.endswith("ValueError: the end\n"), done.stderr
    assert done.stdout == "first\n" + "x" * 100_000 + "\n"


def test_run_of_a_script_says_where_it_came_from(target: Target, repository: Path) -> None:
    run_script(repository, "--lr", "0.1", f"--token={SECRET}", RANK="0", MY_SECRET=SECRET)
    [run] = target.runs()
    detail = target.run(run["id"])
    [process] = detail["processes"]
    assert process["host"] == os.uname().nodename
    assert process["command"][-4:] == ["train.py", "--lr", "0.1", "--token=***"]
    assert process["python"] == sys.version.split()[0]
    assert (process["dirty"], process["variables"]) == (True, {"RANK": "0"} | cuda())
    whole = target.client.get(f"/api/v1/runs/{run['id']}/processes/{process['source']}").json()
    assert len(process["commit"]) == 40
    assert whole["packages"]["numpy"]
    assert "-a = 1\n+a = 2\n" in whole["diff"]
    assert whole["diff"].count("diff --git") == 1
    assert len(whole["output"]) == MAX_OUTPUT_CHARACTERS
    assert "ValueError: the end" in whole["output"][-200:]
    assert SECRET not in f"{detail}{whole}"
    points = target.points(run["id"])
    assert points["system/rss_bytes"][-1]["agent_steps"] in ("0", "7")
    assert float(points["system/rss_bytes"][-1]["value"]) > 10**7
    assert "system/cpu_pct" in points
    exported = target.client.get(f"/api/v1/runs/{run['id']}/export", params={"format": "csv"}).text
    assert process["commit"] in exported
    assert detail["state_reason"] == "ValueError: the end"


def cuda() -> dict[str, str]:
    name = "CUDA_VISIBLE_DEVICES"
    return {name: os.environ[name]} if name in os.environ else {}


@pytest.mark.parametrize("is_off", ["here", "in the installation"])
def test_nothing_is_recorded_if_it_is_turned_off(
    target: Target, monkeypatch: pytest.MonkeyPatch, is_off: str
) -> None:
    monkeypatch.setattr("callboard.starting.RECORDS", True)
    if is_off == "in the installation":
        monkeypatch.setitem(vars(target.service.app_state.settings), "record_scripts", False)
    write = sys.stdout.write
    with callboard.init(algorithm="a", environment="e", record=is_off != "here") as run:
        assert sys.stdout.write == write
        assert run._recorder is None  # noqa: SLF001
        run.log({"a/b": 1.0}, agent_steps=1)
    body = {"source": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "sequence": 1, "output": "printed"}
    stored = target.client.post(f"/api/v1/runs/{run.id}/provenance", json=body).json()["stored"]
    assert stored == (is_off == "here"), "the server keeps nothing that is sent all the same"
    assert len(target.run(run.id)["processes"]) == stored
    assert [*target.points(run.id)] == ["a/b"]


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("--token=abc --lr=0.1", "--token=*** --lr=0.1"),
        ("--wandb-api-key abc --lr 0.1", "--wandb-api-key *** --lr 0.1"),
        ("-password abc", "-password ***"),
        ("--secret -abc", "--secret ***"),
        ("--use-auth --lr 0.1", "--use-auth --lr 0.1"),
        ("wandb.api_key=abc +db.PASSWORD=abc=", "wandb.api_key=*** +db.PASSWORD=***"),
        ("https://user:abc@host/a?x=1", "https://***@host/a?x=1"),
        (
            "--url=https://abc@host?api_key=abc&x=1#token=abc",
            "--url=https://***@host?api_key=***&x=1#token=***",
        ),
        ('{"api_key":"abc","lr":0.1}', '{"api_key":"***","lr":0.1}'),
        ("Authorization:abc", "Authorization:***"),
        ("train.py --lr 0.1 https://host:80/a?x=1", "train.py --lr 0.1 https://host:80/a?x=1"),
    ],
)
def test_values_of_secret_arguments_are_masked(command: str, shown: str) -> None:
    assert masked(command.split()) == shown.split()


def test_diff_is_cut_at_256_kib(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from callboard import provenance

    (repository / "lib.py").write_text("b = '\u00e9\x01'\n" * 60_000)
    monkeypatch.setattr(sys, "argv", [str(repository / "train.py")])
    described = provenance.provenance()
    assert described["diff"].endswith("… (cut)\n")
    assert len(described["diff"].encode()) <= MAX_DIFF_BYTES
    assert described["dirty"]
    monkeypatch.setattr(sys, "argv", ["/nowhere.py"])
    monkeypatch.chdir("/")
    assert provenance.provenance()["commit"] is None


def test_streams_are_as_before_once_nothing_listens(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout, sys.stdout.write
    first, second = Output(), Output()
    first.start()
    sys.stdout.write("a")
    second.start()
    first.stop()
    sys.stdout.write("b\0")
    second.stop()
    sys.stdout.write("c")
    assert (first.take(), second.take()) == ("a", "b\ufffd")
    assert (sys.stdout, sys.stdout.write) == before
    assert capsys.readouterr().out == "ab\0c"


def test_usage_of_processes_and_visible_gpus() -> None:
    usage = Usage()
    children = [subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) for _ in range(2)]
    alone = usage.sample()
    for child in children:
        child.communicate(b"\n")
    assert alone["system/rss_bytes"] > 10**7
    assert alone["system/cpu_pct"] >= 0
    rows = [["0", "GPU-aa", "10", "100", "[N/A]"], ["1", "GPU-bb", "30", "50", "[N/A]"]]
    assert gpu_metrics(rows, None) == {"system/gpu_pct": 20.0, "system/gpu_memory_bytes": 150 * 2**20}
    assert gpu_metrics(rows, ["1"]) == {"system/gpu_pct": 30.0, "system/gpu_memory_bytes": 50 * 2**20}
    assert gpu_metrics(rows, ["GPU-a"])["system/gpu_pct"] == 10.0
    assert gpu_metrics(rows, []) == {}
