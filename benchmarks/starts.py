"""How long and how much memory it takes until engines begin: two trees of Callboard in turn.

    python -m benchmarks.starts OLD NEW [--rounds 3] [--only PART ...]

Each tree's `callboard up` runs in an empty home with this interpreter, and is used over REST. The parts
`click-…` begin with the click on a card of the empty home, in Chromium, and end with the first painted frame:
both trees need a built `frontend/dist`. For an idle machine only. Prints the medians of all rounds, the least
and the most, and the last tree's median as a part of the first's.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from signal import SIGTERM
from statistics import median
from time import monotonic, sleep
from typing import Any

import httpx
import psutil
from websockets.sync.client import connect

TIMEOUT_S = 1200.0
TICK_S = 0.01
ENDLESS = 10**9
N_ENGINES = 8
CARTPOLE, PONG = "CartPole-v1", "ALE/Pong-v5"
Results = dict[str, float]
PLAYS = "() => document.querySelector('canvas[aria-label^=Live]:not([hidden])') !== null"


class Service:
    """`callboard up` of a tree in an empty home."""

    def __init__(self, tree: Path, home: Path, slots: int) -> None:
        """Start it, and wait until its worker can claim runs."""
        self._tree = tree
        self._env = {name: value for name, value in os.environ.items() if not name.startswith("CALLBOARD_")}
        self._env |= {
            "PYTHONPATH": f"{tree}:{tree / 'client'}",
            "CALLBOARD_HOME": str(home),
            "CALLBOARD_PORT": "0",
            "CALLBOARD_DEMO": "false",
            "CALLBOARD_SLOTS": str(slots),
        }
        if (pages := tree / "frontend" / "dist").is_dir():
            self._env["CALLBOARD_FRONTEND_DIR"] = str(pages)
        output = home.with_suffix(".txt")
        with output.open("wb") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "callboard_cli.main", "up"],
                cwd=tree, env=self._env, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
            )  # fmt: skip
        self._await(lambda: "/login?token=" in output.read_text() or self._process.poll() is not None)
        self.link = re.findall(r"http://\S+/login\?token=\S+", output.read_text())[0]
        self.url = self.link.partition("/login")[0]
        token = self._run("token", "create", "starts").strip()
        self.headers = {"Authorization": f"Bearer {token}"}
        self.http = httpx.Client(base_url=f"{self.url}/api/v1", headers=self.headers, timeout=60)
        self._await(lambda: PONG in str(self.get("/hosts")))
        [self.worker] = [
            child for child in psutil.Process(self._process.pid).children() if "worker" in child.cmdline()
        ]
        self._await(self.is_idle)

    def stop(self) -> None:
        """End it."""
        self.http.close()
        self._process.send_signal(SIGTERM)
        self._process.wait(TIMEOUT_S)

    def get(self, path: str) -> Any:
        """The JSON of an answer."""
        return self.http.get(path).raise_for_status().json()

    def post(self, path: str, **body: Any) -> Any:
        """The JSON of an answer."""
        return self.http.post(path, json=body).raise_for_status().json()

    def start_run(self, environment: str, agent_steps: int, **body: Any) -> str:
        """Create a run, and return its id."""
        body = {"algorithm": "paac", "environment": environment, "device": "cpu"} | body
        run_id: str = self.post("/runs", stop={"agent_steps": agent_steps}, **body)["items"][0]["id"]
        return run_id

    def train_shortly(self) -> str:
        """Have a short run finish, and return its id."""
        run_id = self.start_run(CARTPOLE, 3_000)
        self._await_runs(lambda run: run["state"] == "finished")
        return run_id

    def await_agent_steps(self, agent_steps: int) -> None:
        """Wait until every run has taken so many."""
        self._await_runs(lambda run: run["agent_steps"] > agent_steps)

    def _await_runs(self, is_so: Callable[[Any], bool]) -> None:
        def are_so() -> bool:
            runs = self.get("/runs")["items"]
            for run in runs:
                if run["state"] == "failed":
                    raise RuntimeError(run["state_reason"])
            return all(map(is_so, runs))

        self._await(are_so)

    def cpu_s(self) -> float:
        """Processor time of the worker, its engines and its server, from the worker's start on."""
        total = 0.0
        for process in (self.worker, *self.worker.children(recursive=True)):
            with suppress(psutil.Error):
                total += sum(process.cpu_times()[:4])
        return total

    def engine_bytes(self) -> int:
        """PSS of all processes below the worker."""
        total = 0
        for process in self.worker.children(recursive=True):
            with suppress(OSError):
                text = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
                total += 1024 * int(re.findall(r"^Pss: +(\d+)", text, re.M)[0])
        return total

    def time_until(self, is_so: Callable[[], bool]) -> float:
        """Seconds until something is so."""
        started = monotonic()
        self._await(is_so)
        return monotonic() - started

    def is_idle(self) -> bool:
        """Whether the worker and what it has started have computed nothing for a second."""
        before = self.cpu_s()
        sleep(1.0)
        return self.cpu_s() - before < 0.1

    def _await(self, is_so: Callable[[], bool]) -> None:
        deadline = monotonic() + TIMEOUT_S
        while not is_so():
            if monotonic() > deadline:
                raise TimeoutError
            sleep(TICK_S)

    def _run(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "callboard_cli.main", *arguments]
        return subprocess.run(
            command, cwd=self._tree, env=self._env, check=True, capture_output=True, text=True
        ).stdout


@contextmanager
def service(tree: Path, slots: int = 2) -> Iterator[Service]:
    """Run a tree's service, and end it."""
    folder = Path(tempfile.mkdtemp(prefix="starts-"))
    try:
        running = Service(tree, folder / "home", slots)
        try:
            yield running
        finally:
            running.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(tree: Path) -> Results:
    """A short run, through a host with two slots."""
    with service(tree) as running:
        before = running.cpu_s()
        run_id = running.train_shortly()
        running.time_until(running.is_idle)
        processor = running.cpu_s() - before
        lines = running.get(f"/runs/{run_id}/log")["items"]
        trains = next(line["time"] for line in lines if "training on" in line["message"])
        claimed = running.get(f"/runs/{run_id}")["attempts"][0]["claimed_at"]
        passed = datetime.fromisoformat(trains) - datetime.fromisoformat(claimed)
        return {
            "processor seconds of a run of 3,000 agent steps": processor,
            "seconds from claim to the first agent step": passed.total_seconds(),
        }


def begin(tree: Path) -> Results:
    """An evaluation, a replay and a game that goes on from it, on a host with two free slots."""
    with service(tree) as running:
        run_id = running.train_shortly()
        running.time_until(running.is_idle)
        evaluation = running.post(f"/runs/{run_id}/evaluations", episodes=1)["id"]
        results = {
            "evaluation's first episode (s)": running.time_until(
                lambda: any(
                    row["id"] == evaluation and row["state"] == "done"
                    for row in running.get(f"/runs/{run_id}/evaluations")["items"]
                )
            )
        }
        running.time_until(running.is_idle)
        episodes = running.get(f"/runs/{run_id}/episodes")["items"]
        episode = min(episodes, key=lambda row: row["length_steps"])["id"]
        results["replay's first frame (s)"] = running.time_until(
            lambda: running.http.get(f"/episodes/{episode}/video").status_code == 200
        )
        running.time_until(running.is_idle)
        results["Play from here (s)"] = _play(running, episode)
        return results


def _play(running: Service, episode: str) -> float:
    """Seconds from the request to the first frame."""
    started = monotonic()
    session = running.post("/play", **{"from": {"episode": episode, "decision": 5}})["id"]
    address = f"{running.url.replace('http', 'ws', 1)}/api/v1/play/{session}/stream"
    with connect(address, additional_headers=running.headers) as socket:
        for message in socket:
            # A length (u16), the status, and a JPEG once there is a frame.
            if isinstance(message, bytes) and len(message) > 2 + int.from_bytes(message[:2], "little"):
                return monotonic() - started
    raise RuntimeError("the session has ended")


def eight_engines(tree: Path) -> Results:
    """Memory of engines that train together."""
    with service(tree, N_ENGINES) as running:
        for seed in range(N_ENGINES):
            running.start_run(CARTPOLE, ENDLESS, seed=seed)
        running.await_agent_steps(3_000)
        return {"PSS of eight CartPole engines, the server included (MiB)": running.engine_bytes() / 2**20}


def a3c_on_pong(tree: Path) -> Results:
    """Memory of one engine with processes that learn."""
    with service(tree) as running:
        running.start_run(PONG, ENDLESS, algorithm="a3c", config={"n_actors": 4})
        running.await_agent_steps(3_000)
        return {"PSS of A3C on Pong with four actors (MiB)": running.engine_bytes() / 2**20}


def click(card: str, tree: Path) -> Results:
    """From the click on a card of the empty home to the first frame of the agent that plays."""
    from playwright.sync_api import sync_playwright

    with service(tree) as running, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page(base_url=running.url, viewport={"width": 1280, "height": 800})
        page.goto(running.link)
        button = page.get_by_role("button", name=f"Train on {card}")
        button.wait_for()
        running.time_until(running.is_idle)
        started = monotonic()
        button.click()
        page.wait_for_function(PLAYS, timeout=1000 * TIMEOUT_S, polling="raf")
        passed = monotonic() - started
        browser.close()
    return {f"click to playing, {card} (s)": passed}


def study(item: str, tree: Path) -> Results:
    """A paper's figure at the scale *minutes*, on two slots."""
    with service(tree) as running:
        study_id = running.post("/studies", item=item, scale="minutes")["id"]
        passed = running.time_until(lambda: running.get(f"/studies/{study_id}")["state"] == "finished")
    return {f"{item} at minutes (min)": passed / 60}


PARTS: dict[str, Callable[[Path], Results]] = {
    "run": run,
    "begin": begin,
    "eight-engines": eight_engines,
    "a3c-on-pong": a3c_on_pong,
    "click-cartpole": partial(click, "CartPole"),
    "click-pong": partial(click, "Pong"),
}
STUDIES = {item: partial(study, item) for item in ("a3c-figure-1", "paac-figure-3", "ga3c-figure-7")}
"""Measured once each."""


def main() -> None:
    """Measure the trees in turn; print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.starts", description=__doc__)
    parser.add_argument("trees", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=[*PARTS, *STUDIES], default=[*PARTS, *STUDIES])
    given = parser.parse_args()
    results: dict[str, dict[Path, list[float]]] = {}
    for k in range(given.rounds):
        for part in given.only:
            if k > 0 and part in STUDIES:
                continue
            for tree in given.trees[:: 1 if k % 2 == 0 else -1]:
                for row, value in (PARTS | STUDIES)[part](tree.resolve()).items():
                    results.setdefault(row, {}).setdefault(tree, []).append(value)
                    print(f"round {k + 1}, {tree}: {row}: {value:.2f}", file=sys.stderr)  # noqa: T201
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; median (least to most)")  # noqa: T201
    for row, values in results.items():
        medians = [median(values[tree]) for tree in given.trees]
        cells = [
            f"{middle:.2f} ({min(values[tree]):.2f} to {max(values[tree]):.2f})"
            for tree, middle in zip(given.trees, medians, strict=True)
        ]
        print(f"| {row} | {' | '.join(cells)} | {medians[-1] / medians[0]:.2f} |")  # noqa: T201


if __name__ == "__main__":
    main()
