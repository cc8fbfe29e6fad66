"""`make soak`: hours of ordinary use of an installation of `callboard up`, with slopes of what it holds.

    python -m tests.campaigns.soak [--minutes 60] [--users 10] [--runs 4] [--csv samples.csv]

So many runs train at a time; the next is queued when one ends, and the oldest are deleted. Meanwhile each
user has a stream of events, which stays open or reconnects, and polls pages; runs are exported. Memory (USS),
file descriptors and threads of each process and the size of the home are sampled. Prints, for each, its mean
and its slope per hour with a 95 % interval: a regression on means of five minutes, without the first third.
"""

import argparse
import csv
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event, Thread
from time import monotonic

import httpx
import numpy as np
import psutil
from scipy import stats

from tests.support import custom_environment
from tests.support.installation import Installation
from tests.support.pages import session_headers

MIB = 2**20
SAMPLE_S = 30.0
BLOCK_S = 300.0
WARM_UP_SHARE = 1 / 3
POLL_S = 5.0
RECONNECT_S = 60.0
KEPT_RUNS = 10
RUNNING = {"queued", "starting", "running", "stopping"}
RUN = {
    "environment": "Custom/Paced-v0",
    "stop": {"agent_steps": 100_000},
    "name": "soak",
}
ALGORITHMS = (
    ("paac", {"n_e": 2, "n_w": 1}),
    ("a3c", {"n_actors": 1}),
    ("dqn", {"learning_starts_agent_steps": 1_000}),
)


class Soak:
    """An installation in use, until `done` is set."""

    def __init__(self, installation: Installation, n_runs: int) -> None:
        self.installation = installation
        self.n_runs = n_runs
        self.client = installation.log_in()
        self.answers: Counter[str] = Counter()
        self.done = Event()
        self.n_started = 0
        self.began = monotonic()

    def streams(self, *, reconnect: bool) -> None:
        """Read the stream of events."""
        headers = session_headers(self.client)
        while not self.done.is_set():
            ends_at = monotonic() + RECONNECT_S
            with (
                suppress(httpx.HTTPError),
                httpx.stream(
                    "GET", f"{self.installation.url}/api/v1/events", headers=headers, timeout=60
                ) as stream,
            ):
                for _ in stream.iter_lines():
                    if self.done.is_set() or (reconnect and monotonic() > ends_at):
                        break

    def poll(self) -> None:
        """Ask for what the pages show."""
        while not self.done.wait(POLL_S):
            runs = self._get("/api/v1/runs?limit=20").get("items", [])
            for run in runs[:2]:
                self._get(f"/api/v1/runs/{run['id']}")
                self._get(f"/api/v1/series?run={run['id']}&metric=rollout/episode_return")
                self._get(f"/api/v1/figures/learning_curve?run={run['id']}")
                self._get(f"/api/v1/runs/{run['id']}/episodes")
            self._get("/api/v1/hosts")

    def train(self) -> None:
        """Keep runs training, delete the oldest, export the newest that has ended."""
        while not self.done.wait(1.0):
            runs = self._get("/api/v1/runs?limit=100").get("items", [])
            if sum(run["state"] in RUNNING for run in runs) >= self.n_runs:
                continue
            ended = [run for run in runs if run["state"] not in RUNNING]
            if ended:
                self._get(f"/api/v1/runs/{ended[0]['id']}/export?format=csv", parse=False)
            for run in ended[KEPT_RUNS:]:
                self._send("DELETE", f"/api/v1/runs/{run['id']}")
            algorithm, config = ALGORITHMS[self.n_started % len(ALGORITHMS)]
            body = RUN | {"algorithm": algorithm, "config": config, "seed": self.n_started}
            self._send("POST", "/api/v1/runs", body)
            self.n_started += 1

    def sample(self) -> dict[str, float]:
        """Measure the processes and the home."""
        values = {"seconds": monotonic() - self.began}
        for name, process in self.installation.children().items():
            with suppress(psutil.Error):  # it has just ended
                values[f"{name}: memory, MiB"] = process.memory_full_info().uss / MIB
                values[f"{name}: file descriptors"] = process.num_fds()
                values[f"{name}: threads"] = process.num_threads()
        files = [file for file in self.installation.home.rglob("*") if not file.is_dir()]
        values["home, MiB"] = 0.0
        for file in files:
            with suppress(FileNotFoundError):
                values["home, MiB"] += file.stat().st_size / MIB
        return values

    def _get(self, path: str, *, parse: bool = True) -> dict[str, list[dict[str, str]]]:
        answer = self._send("GET", path)
        return dict(answer.json()) if parse and answer is not None and answer.is_success else {}

    def _send(self, method: str, path: str, body: object = None) -> httpx.Response | None:
        """Send a request and count its answer; None without one."""
        try:
            answer = self.client.request(method, path, json=body)
        except httpx.HTTPError as error:
            self.answers[f"{method} {type(error).__name__}"] += 1
            return None
        self.answers[f"{method} {answer.status_code}"] += 1
        return answer


def slope(at_s: Sequence[float], values: Sequence[float]) -> tuple[float, float, float]:
    """The slope per hour with its 95 % interval, over means of five minutes."""
    at, y = np.asarray(at_s), np.asarray(values)
    kept = at >= WARM_UP_SHARE * at[-1]
    blocks = (at[kept] // BLOCK_S).astype(int)
    hours = np.array([at[kept][blocks == b].mean() for b in np.unique(blocks)]) / 3600
    means = np.array([y[kept][blocks == b].mean() for b in np.unique(blocks)])
    if len(hours) < 3:
        return np.nan, np.nan, np.nan
    fit = stats.linregress(hours, means)
    half = stats.t.ppf(0.975, len(hours) - 2) * fit.stderr
    return fit.slope, fit.slope - half, fit.slope + half


def main() -> int:
    """Run it. Return 1 if a process was restarted, or a request had no answer or a 5xx."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--users", type=int, default=10)
    parser.add_argument("--runs", type=int, default=4, help="runs that train at a time")
    parser.add_argument("--csv", type=Path, help="file for the samples")
    args = parser.parse_args()
    samples: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="cb-") as folder:
        environments = custom_environment.write(Path(folder), custom_environment.PACED)
        installation = Installation(
            Path(folder) / "home", environments_file=environments, slots=args.runs, engine_niceness=10
        )
        try:
            soak = Soak(installation, args.runs)
            work: list[Callable[[], None]] = [soak.train]
            for n in range(args.users):
                work += [soak.poll, partial(soak.streams, reconnect=n % 2 == 1)]
            threads = [Thread(target=target, daemon=True) for target in work]
            processes = installation.children()
            for thread in threads:
                thread.start()
            while monotonic() - soak.began < 60 * args.minutes:
                samples.append(soak.sample())
                if args.csv:
                    write(samples, args.csv)
                soak.done.wait(SAMPLE_S)
            soak.done.set()
            for thread in threads:
                thread.join(timeout=120)
            restarted = [name for name, process in processes.items() if not process.is_running()]
        finally:
            installation.stop()
    sys.stdout.write(report(samples, soak, restarted))
    return int(bool(restarted) or any(name.split()[1][0] not in "234" for name in soak.answers))


def write(samples: list[dict[str, float]], path: Path) -> None:
    """Write the samples so far."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(samples[0]), extrasaction="ignore")
        writer.writeheader()
        writer.writerows(samples)


def report(samples: list[dict[str, float]], soak: Soak, restarted: list[str]) -> str:
    """Return the table."""
    lines = [
        f"{samples[-1]['seconds'] / 60:.0f} minutes, {soak.n_started} runs; "
        f"restarted: {', '.join(restarted) or 'none'}",
        "answers: " + ", ".join(f"{name} x {count}" for name, count in sorted(soak.answers.items())),
    ]
    for name in samples[-1]:
        if name == "seconds":
            continue
        at, values = zip(*[(row["seconds"], row[name]) for row in samples if name in row], strict=True)
        per_hour, low, high = slope(at, values)
        lines.append(
            f"{name}: {values[0]:.1f} at the start, {np.mean(values):.1f} on average, {values[-1]:.1f} at "
            f"the end; {per_hour:+.2f} an hour [{low:+.2f}, {high:+.2f}]"
        )
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main())
