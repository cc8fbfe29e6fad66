"""Users who read and write as pages do, in a process of their own, while an installation is attacked.

`python -m tests.campaigns.attacks.users URL` reads a JSON object from standard input: `tokens`, one a user,
and `runs`, ids of runs with points, of which each user has one. It prints a line for each request: when it
began on the clock that all processes share, `read` or `write`, the status or `none`, and its seconds.
"""

import http.client
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Thread
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlsplit

import numpy as np

ROOT = Path(__file__).parents[3]
PAUSE_S = (1.0, 3.0)
"""Shortest and longest pause of a user between two requests."""
TIMEOUT_S = 30.0
WRITE_SHARE = 0.2
"""Of the requests."""


@dataclass(frozen=True)
class Sample:
    """One request of a user."""

    began_s: float
    is_write: bool
    status: str
    seconds: float


class Users:
    """The process of the users.

    Args:
        url: address of the installation.
        tokens: a token for each user.
        runs: ids of runs, one for each user.
        log: file of their requests.
    """

    def __init__(self, url: str, tokens: Sequence[str], runs: Sequence[str], log: Path) -> None:
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, url], cwd=ROOT, stdin=subprocess.PIPE, stdout=output
            )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"tokens": tokens, "runs": runs}).encode())
        self._process.stdin.close()

    def samples(self, since_s: float = 0.0) -> list[Sample]:
        """The requests that began since then and have ended."""
        lines = self._log.read_text().splitlines(keepends=True)
        rows = (line.split() for line in lines if line.endswith("\n"))
        parsed = [Sample(float(began), kind == "write", status, float(s)) for began, kind, status, s in rows]
        return [sample for sample in parsed if sample.began_s >= since_s]

    def stop(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.wait()


def p95_s(samples: Sequence[Sample]) -> float:
    """The 95th percentile of their seconds; 0 of none."""
    return float(np.percentile([sample.seconds for sample in samples], 95)) if samples else 0.0


def summary(samples: Sequence[Sample]) -> str:
    """Requests, percentiles and refusals in one line."""
    reads = [sample for sample in samples if not sample.is_write]
    writes = [sample for sample in samples if sample.is_write]
    refused = Counter(sample.status for sample in samples if sample.status != "200")
    listed = ", ".join(f"{status} x {n}" for status, n in sorted(refused.items())) or "none refused"
    slowest_s = max((sample.seconds for sample in samples), default=0.0)
    return (
        f"users: {len(samples)} requests, p95 {p95_s(samples):.2f} s (reads {p95_s(reads):.2f}, writes "
        f"{p95_s(writes):.2f}), slowest {slowest_s:.2f} s, {listed}"
    )


def _requests(run_id: str) -> Iterator[tuple[str, str, Any]]:
    """What the pages ask for that a user opens: the list, a run, its curve and its log, the hosts."""
    chance = random.Random(run_id)
    pages = [
        "/runs?limit=50",
        f"/runs/{run_id}",
        f"/runs/{run_id}/series",
        f"/series?run={run_id}&metric=flood/0000",
        f"/runs/{run_id}/log?limit=100",
        "/hosts",
        "/auth/me",
    ]
    n = 0
    while True:
        n += 1
        if chance.random() < WRITE_SHARE:
            yield "PATCH", f"/runs/{run_id}", {"notes": f"note {n}"}
        else:
            yield "GET", chance.choice(pages), None


def _ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: str | None, headers: dict[str, str]
) -> str:
    """The status of a request, or `none`; the connection is then closed."""
    try:
        connection.request(method, f"/api/v1{path}", body, headers)
        answer = connection.getresponse()
        answer.read()
        return str(answer.status)
    except (OSError, http.client.HTTPException):
        connection.close()
        return "none"


def _use(url: str, token: str, run_id: str, lock: Lock) -> None:
    address = urlsplit(url)
    assert address.hostname is not None
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=TIMEOUT_S)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    sleep(random.uniform(0, PAUSE_S[1]))
    for method, path, body in _requests(run_id):
        began = monotonic()
        sent = json.dumps(body) if body else None
        status = _ask(connection, method, path, sent, headers)
        if status == "none":  # the server had closed an idle connection: browsers try once more, too
            status = _ask(connection, method, path, sent, headers)
        seconds = monotonic() - began
        with lock:
            sys.stdout.write(f"{began:.3f} {'read' if method == 'GET' else 'write'} {status} {seconds:.4f}\n")
            sys.stdout.flush()
        sleep(random.uniform(*PAUSE_S))


def main() -> None:
    """Use the installation until this process is ended."""
    given = json.load(sys.stdin)
    lock = Lock()
    threads = [
        Thread(target=_use, args=(sys.argv[1], token, run_id, lock), daemon=True)
        for token, run_id in zip(given["tokens"], given["runs"], strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
