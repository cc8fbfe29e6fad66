"""`make starts`: hundreds of runs that start and end, and what their worker and its engine server hold then.

    python -m tests.campaigns.starts [--starts 500]

Two runs train at a time: most finish, with an evaluation, every fifth is stopped while it trains. After each
twenty, file descriptors, threads, processes and memory (USS) of the worker and of the server are printed.
Returns 1 if any of these is more at the end than after the first tenth, by over a tenth.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.support.installation import installation
from tests.support.waiting import PATIENCE_S, until
from tests.workers.support import ENDLESS

MIB = 2**20
BATCH = 20
MOST_GROWTH = 1.1
"""The worker's idle connections to the database and to Redis, and its caches, come and go."""
RUN: dict[str, Any] = {
    "algorithm": "paac",
    "environment": "CartPole-v1",
    "config": {"n_e": 4, "n_w": 1, "evaluation_episodes": 2},
}


def start_and_stop(client: httpx.Client, n: int) -> None:
    """Have so many runs start and end."""
    endless = set()
    for k in range(n):
        stop = {"agent_steps": ENDLESS if k % 5 == 0 else 500}
        created = client.post("/api/v1/runs", json=RUN | {"stop": stop, "seed": k}).raise_for_status()
        if k % 5 == 0:
            endless.add(created.json()["items"][0]["id"])

    def have_ended() -> bool:
        runs = client.get(f"/api/v1/runs?limit={n}").raise_for_status().json()["items"]
        for run in runs:
            if run["state"] == "failed":
                raise RuntimeError(run["state_reason"])
            if run["state"] == "running" and run["id"] in endless:
                client.post(f"/api/v1/runs/{run['id']}/stop")
        return all(run["state"] in ("finished", "stopped") for run in runs)

    until(have_ended, n * PATIENCE_S, every_s=0.2)


def sample(worker: psutil.Process) -> dict[str, float]:
    """What worker and server hold, once no engine is left."""
    until(
        lambda: len(worker.children()) == 1, detail=lambda: [child.cmdline() for child in worker.children()]
    )
    (server,) = worker.children()
    values: dict[str, float] = {}
    for name, process in (("worker", worker), ("server", server)):
        values[f"{name}: file descriptors"] = process.num_fds()
        values[f"{name}: threads"] = process.num_threads()
        values[f"{name}: memory, MiB"] = process.memory_full_info().uss / MIB
    values["server: processes"] = len(server.children(recursive=True))
    return values


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.starts", description=__doc__)
    parser.add_argument("--starts", type=int, default=500)
    given = parser.parse_args()
    samples = []
    with (
        tempfile.TemporaryDirectory(prefix="cb-") as folder,
        installation(Path(folder) / "home", slots=2) as running,
    ):
        client = running.log_in()
        worker = running.children()["worker"]
        for n in range(BATCH, given.starts + 1, BATCH):
            start_and_stop(client, BATCH)
            samples.append(sample(worker))
            values = ", ".join(f"{name} {value:g}" for name, value in samples[-1].items())
            sys.stdout.write(f"{n} starts: {values}\n")
            sys.stdout.flush()
    before, after = samples[len(samples) // 10], samples[-1]
    grown = [name for name in after if after[name] > before[name] * MOST_GROWTH]
    sys.stdout.write(f"grown: {', '.join(grown) or 'nothing'}\n")
    return int(bool(grown))


if __name__ == "__main__":
    sys.exit(main())
