"""How long and how much memory it takes until engines begin: two trees of Callboard in turn.

    python -m benchmarks.starts OLD NEW [--rounds 3] [--slots-of-memory 8] [--pages]

Each tree's `callboard up` runs in an empty home with this interpreter, and is used over REST. With `--pages`
also from the click on a card of the empty home, in Chromium, to the first painted frame: for trees whose
`frontend/dist` is built. For an idle machine only. Prints medians, and the least and the most, of all rounds.
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
from pathlib import Path
from signal import SIGTERM
from statistics import median
from time import monotonic, sleep
from typing import Any

import httpx
import psutil
from websockets.sync.client import connect

TIMEOUT_S = 300.0
TICK_S = 0.01
ENDLESS = 10**9
CARTPOLE, PONG = "CartPole-v1", "ALE/Pong-v5"
RENDER = "() => document.querySelector('canvas[aria-label^=Live]:not([hidden])') !== null"


class Service:
    """`callboard up` of a tree in an empty home."""

    def __init__(self, tree: Path, home: Path, slots: int) -> None:
        """Start it, and wait until its worker can claim runs."""
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
        self._await(self._is_idle)

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

    def await_run(self, run_id: str, reached: Callable[[Any], bool]) -> None:
        """Wait until a run is so."""

        def is_so() -> bool:
            run = self.get(f"/runs/{run_id}")
            if run["state"] == "failed":
                raise RuntimeError(run["error"] or run["state_reason"])
            return reached(run)

        self._await(is_so)

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

    def _await(self, is_so: Callable[[], bool]) -> None:
        deadline = monotonic() + TIMEOUT_S
        while not is_so():
            if monotonic() > deadline:
                raise TimeoutError
            sleep(TICK_S)

    def _is_idle(self) -> bool:
        """Whether the worker and what it has started have computed nothing for a second."""
        before = self.cpu_s()
        sleep(1.0)
        return self.cpu_s() - before < 0.1

    def _run(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "callboard_cli.main", *arguments]
        return subprocess.run(command, env=self._env, check=True, capture_output=True, text=True).stdout


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


def begin(tree: Path) -> dict[str, float]:
    """A run, an evaluation, a replay and a game that goes on from it, through a host with two slots."""
    with service(tree) as running:
        before = running.cpu_s()
        run_id = running.start_run(CARTPOLE, 3_000)
        running.await_run(run_id, lambda run: run["state"] == "finished")
        running.time_until(running._is_idle)
        results = {"run of 3,000 agent steps, processor (s)": running.cpu_s() - before}
        run = running.get(f"/runs/{run_id}")
        lines = running.get(f"/runs/{run_id}/log")["items"]
        trains = next(line["time"] for line in lines if "training on" in line["message"])
        claimed = run["attempts"][0]["claimed_at"]
        passed = datetime.fromisoformat(trains) - datetime.fromisoformat(claimed)
        results["from claim to training (s)"] = passed.total_seconds()
        evaluation = running.post(f"/runs/{run_id}/evaluations", episodes=1)["id"]
        results["evaluation's first episode (s)"] = running.time_until(
            lambda: any(
                row["id"] == evaluation and row["state"] == "done"
                for row in running.get(f"/runs/{run_id}/evaluations")["items"]
            )
        )
        episodes = running.get(f"/runs/{run_id}/episodes")["items"]
        episode = min(episodes, key=lambda row: row["length_steps"])["id"]
        results["replay's first frame (s)"] = running.time_until(
            lambda: running.http.get(f"/episodes/{episode}/video").status_code == 200
        )
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


def memory(tree: Path, engines: int) -> dict[str, float]:
    """PSS of engines that train."""
    with service(tree, engines) as running:
        runs = [running.start_run(CARTPOLE, ENDLESS, seed=seed) for seed in range(engines)]
        for run_id in runs:
            running.await_run(run_id, lambda run: run["agent_steps"] > 3_000)
        results = {f"{engines} CartPole engines, PSS (MiB)": running.engine_bytes() / 2**20}
        for run_id in runs:
            running.post(f"/runs/{run_id}/kill")
        running.time_until(running._is_idle)
        run_id = running.start_run(PONG, ENDLESS, algorithm="a3c", config={"n_actors": 4})
        running.await_run(run_id, lambda run: run["agent_steps"] > 3_000)
        results["A3C on Pong, four actors, PSS (MiB)"] = running.engine_bytes() / 2**20
        running.post(f"/runs/{run_id}/kill")
        return results


def click(tree: Path) -> dict[str, float]:
    """From the click on a card of the empty home to the first frame of the agent that plays."""
    from playwright.sync_api import sync_playwright

    results = {}
    for card in ("CartPole", "Pong"):
        with service(tree) as running, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
            page = browser.new_page(base_url=running.url, viewport={"width": 1280, "height": 800})
            page.goto(running.link)
            button = page.get_by_role("button", name=f"Train on {card}")
            button.wait_for()
            sleep(2.0)  # the home's own videos have loaded
            started = monotonic()
            button.click()
            page.wait_for_function(RENDER, timeout=1000 * TIMEOUT_S, polling="raf")
            results[f"click to playing, {card} (s)"] = monotonic() - started
            browser.close()
    return results


def main() -> None:
    """Measure both trees in turn; print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.starts", description=__doc__)
    parser.add_argument("trees", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engines", type=int, default=8, help="engines whose memory is measured together")
    parser.add_argument(
        "--parts", nargs="+", choices=("begin", "memory", "click"), default=["begin", "memory"]
    )
    given = parser.parse_args()
    parts: dict[str, Callable[[Path], dict[str, float]]] = {
        "begin": begin,
        "memory": lambda tree: memory(tree, given.engines),
        "click": click,
    }
    results: dict[str, dict[Path, list[float]]] = {}
    for k in range(given.rounds):
        for tree in given.trees[:: 1 if k % 2 == 0 else -1]:
            for part in given.parts:
                for row, value in parts[part](tree.resolve()).items():
                    results.setdefault(row, {}).setdefault(tree, []).append(value)
                    print(f"round {k + 1}, {tree}: {row}: {value:.2f}", file=sys.stderr)  # noqa: T201
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; median (least to most)")  # noqa: T201
    for row, values in results.items():
        medians = {tree: median(rounds) for tree, rounds in values.items()}
        cells = [
            f"{medians[tree]:.2f} ({min(rounds):.2f} to {max(rounds):.2f})" for tree, rounds in values.items()
        ]
        first = next(iter(medians.values()))
        print(f"| {row} | {' | '.join(cells)} | {[*medians.values()][-1] / first:.2f} |")  # noqa: T201


if __name__ == "__main__":
    main()
