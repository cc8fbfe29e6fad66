"""Short attacks on what every route promises: whom it reads, and bounds of input, work, writes and room."""

import http.client
import io
import json
import os
import socket
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Lock, Thread
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx
import numpy as np

from backend.access.auth.login_limits import FREE_FAILURES
from backend.db.base import new_id
from backend.external.endpoints import ARROW
from backend.external.schemas import MAX_SERIES_OF_REQUEST
from backend.replays.videos.service import MAX_WAITING_OF_SENDER
from tests.campaigns.attacks.attacks import many_runs
from tests.campaigns.attacks.target import Report, Target
from tests.support.arrow import arrow_stream
from tests.support.external import SOURCE
from tests.support.rows import CARTPOLE, external_request
from tests.support.sockets import connected

FLOOD_S = 4.0
MAX_ANSWER_BYTES = 16_000
"""Of a problem document."""
MAX_PATCH_S = 1.0
"""How long a change of another user may take."""
ESTIMATE = "/api/v1/runs/estimate"


@dataclass
class Flood:
    """What the answers to many requests were."""

    answers: Counter[str] = field(default_factory=Counter)
    largest_problem_bytes: int = 0
    """Largest answer with a status of 400 or more."""


def flood(
    target: Target,
    n: int,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
    seconds: float = FLOOD_S,
) -> Flood:
    """Send a request again and again on `n` connections."""
    result, lock, end = Flood(), Lock(), monotonic() + seconds

    def send() -> None:
        address = urlsplit(target.url)
        assert address.hostname is not None
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
        while monotonic() < end:
            size = 0
            try:
                connection.request(method, path, body, headers or {})
                answer = connection.getresponse()
                size = len(answer.read())
                status = str(answer.status)
            except (OSError, http.client.HTTPException):
                connection.close()
                status = "cut"
            with lock:
                result.answers[status] += 1
                if status >= "400":
                    result.largest_problem_bytes = max(result.largest_problem_bytes, size)

    threads = [Thread(target=send) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return result


def check(report: Report, result: Flood, *allowed: str) -> None:
    """Add the answers to the report, and what is wrong with them."""
    report.answers += result.answers
    if others := set(result.answers) - {*allowed, "429", "503", "cut"}:
        report.problems.append(f"answered {', '.join(sorted(others))}")
    if result.largest_problem_bytes > MAX_ANSWER_BYTES:
        report.problems.append(f"a problem document of {result.largest_problem_bytes:,} bytes")


def as_json(token: str | None) -> dict[str, str]:
    """The headers of a request with a JSON body."""
    return {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})


def slowest_patch_s(target: Target, done: Callable[[], bool]) -> float:
    """The longest that a change of another user takes until `done`."""
    slowest, n = 0.0, 0
    with httpx.Client(headers=as_json(target.tokens["another"]), timeout=60) as client:
        while not done():
            n += 1
            began = monotonic()
            with suppress(httpx.HTTPError):
                client.patch(f"{target.url}/api/v1/runs/{target.run_id}", json={"notes": f"note {n}"})
            slowest = max(slowest, monotonic() - began)
            sleep(0.1)
    return slowest


def check_writes(target: Target, report: Report, attack: Callable[[], None]) -> None:
    """Run an attack while another user changes a run."""
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(attack)
        slowest = slowest_patch_s(target, running.done)
        running.result()
    report.details += f" slowest change of another user {slowest:.2f} s"
    if slowest > MAX_PATCH_S:
        report.problems.append(f"a change of another user took {slowest:.1f} s")


# Authenticate, then read.


def bodies_without_login(target: Target, report: Report) -> None:
    """8 connections send 2 MB of nested lists to routes that need a token."""
    body = b"[" + b"[[]]," * 400_000 + b"[]]"
    for path in ("/api/v1/runs", "/api/v1/runs/bulk", "/api/v1/sweeps"):
        check(report, flood(target, 8, "POST", path, body, as_json(None), FLOOD_S / 3), "401", "413")


def endless_bodies_without_login(target: Target, report: Report) -> None:
    """200 connections announce 2 MB to open and to closed routes, and send a byte a second."""
    address = urlsplit(target.url)
    sockets = []
    for n in range(200):
        path = ("/api/v1/auth/login", "/api/v1/runs")[n % 2]
        client = socket.create_connection((address.hostname, address.port), timeout=5)
        client.sendall(
            f"POST {path} HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\n"
            "Content-Length: 2000000\r\n\r\n[".encode()
        )
        sockets.append(client)
    for _ in range(int(FLOOD_S)):
        for client in sockets:
            with suppress(OSError):
                client.sendall(b"1")
        sleep(1)
    for client in sockets:
        client.setblocking(False)
        try:
            first = client.recv(15)
            report.answers[first[9:12].decode() or "cut"] += 1
        except BlockingIOError:
            report.answers["waiting"] += 1
        except OSError:
            report.answers["cut"] += 1
        client.close()


def stolen_cookies(target: Target, report: Report) -> None:
    """The session's cookie without the page's secret, and forged tickets: neither may read anything."""
    cookie = {"Cookie": target.session_headers["Cookie"]}
    for path in ("/api/v1/runs", f"/api/v1/runs?ticket={'a' * 80}", "/api/v1/users"):
        check(report, flood(target, 8, "GET", path, None, cookie, FLOOD_S / 3), "401")


# Bounded input.


def one_byte_chunks(target: Target, report: Report) -> None:
    """4 connections of a viewer send bodies in chunks of one byte."""
    chunks = b"1\r\n1\r\n" * 20_000

    def send(_: int) -> str:
        address = urlsplit(target.url)
        end = monotonic() + FLOOD_S
        status = "cut"
        while monotonic() < end:
            with suppress(OSError), socket.create_connection((address.hostname, address.port), 10) as client:
                head = "\r\n".join(
                    f"{name}: {value}" for name, value in as_json(target.tokens["viewer"]).items()
                )
                client.sendall(
                    f"POST {ESTIMATE} HTTP/1.1\r\nHost: {address.netloc}\r\n{head}\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n".encode()
                )
                for _ in range(100):
                    client.sendall(chunks)
                status = client.recv(15)[9:12].decode() or "cut"
        return status

    report.answers += target.at_once(4, send)


def json_of_every_extreme(target: Target, report: Report) -> None:
    """Bodies of a viewer: deep, wide, with long keys, long numbers and repeated keys."""
    bodies = {
        "deep": b"[" * 100_000 + b"]" * 100_000,
        "wide": b"{" + b",".join(b'"%x":[]' % n for n in range(170_000)) + b"}",
        "long keys": b'{"config":{"' + b"k" * 75_000 + b'":[' + b"0," * 40_000 + b"0]}}",
        "long numbers": b'{"seed":' + b"9" * 1_000_000 + b"}",
        "large exponents": b"[" + b"1e999999999," * 100_000 + b"1]",
        "repeated keys": b"{" + b'"a":1,' * 300_000 + b'"a":1}',
        "surrogates": b'{"name":"' + b"\\ud800" * 300_000 + b'"}',
    }
    for body in bodies.values():
        result = flood(target, 6, "POST", ESTIMATE, body, as_json(target.tokens["viewer"]), FLOOD_S / 7)
        check(report, result, "400", "413", "422")


def large_headers(target: Target, report: Report) -> None:
    """40 connections send 60 KB of headers, and addresses of 60 KB."""
    viewer = as_json(target.tokens["viewer"])
    many = viewer | {f"X-Filler-{n}": "x" * 500 for n in range(100)}
    check(
        report, flood(target, 20, "GET", "/api/v1/runs?limit=1", None, many, FLOOD_S / 2), "200", "400", "431"
    )
    long = f"/api/v1/runs?limit=1&filter={'a' * 60_000}"
    check(report, flood(target, 20, "GET", long, None, viewer, FLOOD_S / 2), "400", "414", "422", "431")


def _sockets(target: Target, report: Report, frames: bytes) -> None:
    """8 WebSockets send these frames and read nothing."""
    address, end = urlsplit(target.url), monotonic() + FLOOD_S
    lock = Lock()

    def send(_: int) -> None:
        while monotonic() < end:
            with suppress(OSError), socket.create_connection((address.hostname, address.port), 10) as client:
                client.sendall(
                    f"GET /api/v1/runs/{target.run_id}/live HTTP/1.1\r\nHost: {address.netloc}\r\n"
                    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                    f"Authorization: Bearer {target.tokens['viewer']}\r\n\r\n".encode()
                )
                status = client.recv(2000)[9:12].decode() or "cut"
                with lock:
                    report.answers[status] += 1
                if status != "101":
                    sleep(0.2)
                while status == "101" and monotonic() < end:
                    client.sendall(frames)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(send, range(8)))


def socket_pings(target: Target, report: Report) -> None:
    """8 WebSockets of a viewer send pings and read nothing."""
    _sockets(target, report, b"\x89\x81\0\0\0\0x" * 2_000)


def socket_fragments(target: Target, report: Report) -> None:
    """8 WebSockets of a viewer send a message in fragments that never ends."""
    _sockets(target, report, b"\x01\x81\0\0\0\0x" + b"\x00\x81\0\0\0\0x" * 2_000)


def strings_without_end(target: Target, report: Report) -> None:
    """Strings that do not end, of quotes alone: without a login, and 2 MB of a viewer."""
    short, long = (b'"' + b'\\"' * n for n in (8_000, 1_000_000))
    check(report, flood(target, 4, "POST", "/api/v1/auth/login", short, as_json(None), FLOOD_S / 2), "422")
    viewer = as_json(target.tokens["viewer"])
    check(report, flood(target, 4, "POST", ESTIMATE, long, viewer, FLOOD_S / 2), "422")


# A bound belongs to one principal.


def open_bodies(target: Target, report: Report) -> None:
    """256 connections begin bodies of a login that do not end; others log in and change runs meanwhile."""
    address = urlsplit(target.url)
    head = (
        f"POST /api/v1/auth/login HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
    )
    with connected(target.url, head.encode() + b"4000\r\n" + b" " * 2**14 + b"\r\n", n=256):

        def others() -> None:
            end = monotonic() + FLOOD_S
            login = {"name": "nobody", "password": "a wrong password"}
            large = external_request(config={"text": "x" * 20_000})
            with httpx.Client(headers=as_json(target.tokens["external"]), timeout=60) as client:
                while monotonic() < end:
                    statuses = [
                        str(client.post(f"{target.url}/api/v1/runs", json=large).status_code),
                        target.status_of("POST", "/api/v1/auth/login", json=login),
                    ]
                    report.answers.update(statuses)
                    if "503" in statuses:
                        report.problems.append("a request with a body was refused")
                        return

        check_writes(target, report, others)


def guesses_of_one_machine(target: Target, report: Report) -> None:
    """Another user of the machine guesses a password from 12 of its loopback addresses."""
    address = urlsplit(target.url)
    body = json.dumps({"name": "owner", "password": "a wrong guess"})
    for n in range(48):
        source = (f"127.0.1.{2 + n // 4}", 0)
        client = http.client.HTTPConnection(str(address.hostname), address.port, 60, source)
        client.request("POST", "/api/v1/auth/login", body, as_json(None))
        report.answers[str(client.getresponse().status)] += 1
        client.close()
    if report.answers["401"] > FREE_FAILURES:
        report.problems.append(f"{report.answers['401']} guesses were tried")


def keys_of_two_scripts(target: Target, report: Report) -> None:
    """Two tokens of a user send the same request with the same idempotency key."""
    ids = set()
    for name in ("operator", "external"):
        headers = as_json(target.tokens[name]) | {"Idempotency-Key": "job-1"}
        answer = httpx.post(f"{target.url}/api/v1/runs", json=external_request(), headers=headers, timeout=60)
        report.answers[str(answer.status_code)] += 1
        ids.add(answer.json()["items"][0]["id"])
    if len(ids) != 2:
        report.problems.append("a script got the run of another one")


def many_videos(target: Target, report: Report) -> None:
    """A script sends 60 videos; at most 20 of them wait."""
    content = io.BytesIO()
    np.savez(content, frames=np.zeros((200, 256, 256, 3), np.uint8))
    sent = content.getvalue()
    with httpx.Client(headers={"Authorization": f"Bearer {target.tokens['external']}"}, timeout=60) as client:
        run = client.post(f"{target.url}/api/v1/runs", json=external_request()).json()["items"][0]["id"]
        path, sequence, end = f"{target.url}/api/v1/runs/{run}", 1, monotonic() + 5 * FLOOD_S
        while monotonic() < end and not report.answers["429"]:
            upload = new_id()
            for offset in range(0, len(sent), 2**20):
                part = sent[offset : offset + 2**20]
                client.put(f"{path}/uploads/{upload}", params={"offset": offset}, content=part)
            fields = {"upload": upload, "size_bytes": len(sent), "sha256": sha256(sent).hexdigest()}
            body = {"source": SOURCE, "sequence": sequence, "agent_steps": sequence, "wall_time_s": 1.0}
            status = client.post(f"{path}/videos", json=body | fields | {"form": "frames"}).status_code
            report.answers[str(status)] += 1
            sequence += status == 200
        waiting = [item for item in client_items(target, run) if item["state"] in ("queued", "running")]
    report.details = f"{len(waiting)} wait"
    if len(waiting) > MAX_WAITING_OF_SENDER:
        report.problems.append(f"{len(waiting)} videos of one script wait")


def client_items(target: Target, run_id: str) -> list[dict[str, Any]]:
    """The videos of a run."""
    answer = target.client.get(f"/api/v1/runs/{run_id}/videos", params={"limit": 1000}).json()
    items: list[dict[str, Any]] = answer["items"]
    return items


# Bounded work.


def large_grids(target: Target, report: Report) -> None:
    """20 estimates of a viewer at once, of 3,000 unknown settings and a grid of 100 values."""
    config = {f"lr{n}": 1 for n in range(3_000)}
    grid = {"config.learning_rate": [n * 1e-6 for n in range(1, 101)]}
    body = json.dumps(CARTPOLE | {"config": config, "grid": grid}).encode()
    check(report, flood(target, 20, "POST", ESTIMATE, body, as_json(target.tokens["viewer"])), "422")


def abandoned_requests(target: Target, report: Report) -> None:
    """A viewer sends 40 costly requests over 10,000 runs and leaves; the installation is quick 2 s later."""
    many_runs(target)
    address = urlsplit(target.url)
    paths = [
        "/api/v1/runs?" + urlencode({"filter": " or ".join(f"zzq{n}" for n in range(20))}),
        "/api/v1/comparisons/groups?by=algorithm",
        "/api/v1/runs/fields",
        "/api/v1/runs?" + urlencode({"sort": "config.learning_rate", "limit": 1000}),
    ]
    end = monotonic() + FLOOD_S
    while monotonic() < end:
        connections = []
        for n in range(40):
            connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=10)
            connection.request("GET", paths[n % len(paths)], headers=as_json(target.tokens["viewer"]))
            connections.append(connection)
        sleep(0.5)
        for connection in connections:
            connection.close()
        report.answers["left"] += len(connections)
    sleep(2)
    began = monotonic()
    status = target.status_of("GET", "/api/v1/runs?limit=1", 20)
    if status != "200" or monotonic() - began > 2:
        report.problems.append(f"2 s later a list answered {status} after {monotonic() - began:.1f} s")


def costly_pages(target: Target, report: Report) -> None:
    """A viewer asks on 20 connections for groups, fields and pages of 1,000 among 10,000 runs."""
    many_runs(target)
    for path in ("/api/v1/comparisons/groups?by=algorithm", "/api/v1/runs/fields", "/api/v1/runs?limit=1000"):
        result = flood(target, 20, "GET", path, None, as_json(target.tokens["viewer"]), FLOOD_S / 3)
        check(report, result, "200")


def odd_searches(target: Target, report: Report) -> None:
    """Filters of wildcards, quotes and brackets of the maximum length."""
    for text in ("%" * 1_900, "_%" * 900, "(" * 900, '"' * 1_900, "not " * 450 + "a", "a=" * 900):
        path = "/api/v1/runs?" + urlencode({"filter": text})
        result = flood(target, 6, "GET", path, None, as_json(target.tokens["viewer"]), FLOOD_S / 6)
        check(report, result, "200", "422")


# Bounded output.


def long_lists_of_problems(target: Target, report: Report) -> None:
    """Requests with thousands of faults: the answer names few of them."""
    viewer = as_json(target.tokens["viewer"])
    body = json.dumps(CARTPOLE | {"config": {f"é{n}": {} for n in range(15_000)}}).encode()
    check(report, flood(target, 8, "POST", ESTIMATE, body, viewer, FLOOD_S / 3), "422")
    path = "/api/v1/series?" + urlencode([("run", "!" * 25) for _ in range(1_500)])
    check(report, flood(target, 8, "GET", path, None, viewer, FLOOD_S / 3), "400", "414", "422", "431")
    logins = json.dumps({f"x{n}": 1 for n in range(5_000)}).encode()
    result = flood(target, 8, "POST", "/api/v1/auth/login", logins, as_json(None), FLOOD_S / 3)
    check(report, result, "422", "413")


def large_specs(target: Target, report: Report) -> None:
    """A script creates runs of the largest spec; a viewer lists them whole on 8 connections."""
    config = {f"s{n:03}": "x" * 90 for n in range(150)}
    with httpx.Client(headers=as_json(target.tokens["external"]), timeout=60) as client:
        for seed in range(40):
            answer = client.post(
                f"{target.url}/api/v1/runs",
                json=external_request(config=config, seed=seed, algorithm="large"),
            )
            report.answers[f"created {answer.status_code}"] += 1
    path = "/api/v1/runs?limit=1000&filter=algorithm:large"
    check(report, flood(target, 8, "GET", path, None, as_json(target.tokens["viewer"])), "200")


# Short writes.


def storms_of_series(target: Target, report: Report) -> None:
    """2 scripts send as many metrics a request as one may."""

    def storm() -> None:
        end = monotonic() + FLOOD_S
        with httpx.Client(headers=as_json(target.tokens["external"]), timeout=60) as client:
            run = client.post(f"{target.url}/api/v1/runs", json=external_request()).json()["items"][0]["id"]
            sequence = 0
            while monotonic() < end:
                sequence += 1
                at = [sequence * 20 + n for n in range(20)]
                rows = {"agent_steps": at, "wall_time_s": [float(n) for n in at], "value": [0.5] * 20}
                series = [{"metric": f"storm/{n}"} | rows for n in range(MAX_SERIES_OF_REQUEST)]
                body = {"source": SOURCE, "sequence": sequence, "series": series}
                answer = client.post(f"{target.url}/api/v1/runs/{run}/points", json=body)
                report.answers[str(answer.status_code)] += 1

    def both() -> None:
        with ThreadPoolExecutor(2) as threads:
            for future in [threads.submit(storm) for _ in range(2)]:
                future.result()

    check_writes(target, report, both)


def bulk_changes(target: Target, report: Report) -> None:
    """An operator tags and untags as many runs as one request may, on 3 connections."""
    many_runs(target)
    ids = [item["id"] for item in target.client.get("/api/v1/runs", params={"limit": 1000}).json()["items"]]

    def change() -> None:
        end, n = monotonic() + FLOOD_S, 0
        with httpx.Client(headers=as_json(target.tokens["operator"]), timeout=60) as client:
            while monotonic() < end:
                n += 1
                action = {"action": ("tag", "untag")[n % 2], "ids": ids, "tags": ["a tag"]}
                answer = client.post(f"{target.url}/api/v1/runs/bulk", json=action)
                report.answers[str(answer.status_code)] += 1

    def all_of_them() -> None:
        with ThreadPoolExecutor(3) as threads:
            for future in [threads.submit(change) for _ in range(3)]:
                future.result()

    check_writes(target, report, all_of_them)


def repeated_creations(target: Target, report: Report) -> None:
    """An operator creates 100 runs a request with keys of their own, some of them twice."""
    body = json.dumps(CARTPOLE | {"queue": "gpu", "seeds": list(range(100))}).encode()

    def create() -> None:
        for n in range(4):
            key = {"Idempotency-Key": f"campaign-{n}"}
            result = flood(
                target, 3, "POST", "/api/v1/runs", body, as_json(target.tokens["operator"]) | key, 1.5
            )
            check(report, result, "201", "409")

    check_writes(target, report, create)


# Quotas and room.


def endless_logs(target: Target, report: Report) -> None:
    """A script sends lines as fast as it can."""

    def send() -> None:
        end, sequence = monotonic() + FLOOD_S, 0
        with httpx.Client(headers=as_json(target.tokens["external"]), timeout=60) as client:
            run = client.post(f"{target.url}/api/v1/runs", json=external_request()).json()["items"][0]["id"]
            while monotonic() < end:
                sequence += 1
                lines = [{"time": time.time(), "level": "info", "message": "x" * 1_800} for _ in range(1_000)]
                body = {"source": SOURCE, "sequence": sequence, "lines": lines}
                answer = client.post(f"{target.url}/api/v1/runs/{run}/log", json=body)
                report.answers[str(answer.status_code)] += 1

    check_writes(target, report, send)


def unfinished_uploads(target: Target, report: Report) -> None:
    """A script begins 1,000 uploads of one byte and completes none."""
    end = monotonic() + FLOOD_S
    with httpx.Client(headers={"Authorization": f"Bearer {target.tokens['external']}"}, timeout=60) as client:
        run = client.post(f"{target.url}/api/v1/runs", json=external_request()).json()["items"][0]["id"]
        for _ in range(1_000):
            path = f"{target.url}/api/v1/runs/{run}/uploads/{new_id()}"
            answer = client.put(path, params={"offset": 0}, content=b"x")
            report.answers[str(answer.status_code)] += 1
            if monotonic() > end:
                break
    if report.answers["200"] + report.answers["204"] > 100:
        report.problems.append(f"accepted {report.answers['200'] + report.answers['204']} unfinished uploads")


# Answers that everybody may ask for.


def open_answers(target: Target, report: Report) -> None:
    """20 connections ask for readiness, the API's description and metrics."""
    for path in ("/readyz", "/openapi.json", "/metrics"):
        check(report, flood(target, 20, "GET", path, None, {}, FLOOD_S / 3), "200", "401")


# Foreign files.


def damaged_files(target: Target, report: Report) -> None:
    """Videos that are none, an archive that claims 4 GiB, and Arrow streams cut at every length."""
    contents = [
        b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
        b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n",
        b"\0\0\0\x18ftypmp42" + b"\0" * 50,
        b"GIF89a\xff\xff\xff\xff\0\0\0",
        b"RIFF\0\0\0\0AVI " + b"\xff" * 100,
        os.urandom(5_000),
    ]
    with httpx.Client(headers={"Authorization": f"Bearer {target.tokens['external']}"}, timeout=60) as client:
        run = client.post(f"{target.url}/api/v1/runs", json=external_request()).json()["items"][0]["id"]
        path = f"{target.url}/api/v1/runs/{run}"
        for sequence, (form, content) in enumerate(
            [*(("file", c) for c in contents), ("frames", _archive())]
        ):
            upload = new_id()
            client.put(f"{path}/uploads/{upload}", params={"offset": 0}, content=content)
            fields = {"upload": upload, "size_bytes": len(content), "sha256": sha256(content).hexdigest()}
            body = {"source": SOURCE, "sequence": sequence + 1, "agent_steps": sequence, "wall_time_s": 1.0}
            answer = client.post(f"{path}/videos", json=body | fields | {"form": form})
            report.answers[f"video {answer.status_code}"] += 1
        at = list(range(50))
        columns = {"metric": ["a"] * 50, "agent_steps": at, "wall_time_s": [1.0] * 50, "value": [1.0] * 50}
        whole = arrow_stream(columns)
        headers = {"Content-Type": ARROW, "Callboard-Source": SOURCE}
        for n in range(0, len(whole), max(1, len(whole) // 100)):
            answer = client.post(
                f"{path}/points", content=whole[:n], headers=headers | {"Callboard-Sequence": str(100 + n)}
            )
            report.answers[f"cut stream {answer.status_code}"] += 1
            if answer.status_code >= 500:
                report.problems.append(f"an Arrow stream cut at {n} bytes answered {answer.status_code}")
    sleep(FLOOD_S / 2)  # for the worker, which encodes them


def _archive() -> bytes:
    """Frames of 4 GiB, deflated."""
    header, whole = io.BytesIO(), io.BytesIO()
    shape = (5_461, 512, 512, 3)
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("frames.npy", header.getvalue() + bytes(2**20))
    return whole.getvalue()


LAWS: dict[str, Callable[[Target, Report], None]] = {
    attack.__name__: attack
    for attack in (
        bodies_without_login,
        endless_bodies_without_login,
        stolen_cookies,
        one_byte_chunks,
        json_of_every_extreme,
        strings_without_end,
        open_bodies,
        guesses_of_one_machine,
        keys_of_two_scripts,
        many_videos,
        large_headers,
        socket_pings,
        socket_fragments,
        large_grids,
        abandoned_requests,
        costly_pages,
        odd_searches,
        long_lists_of_problems,
        large_specs,
        storms_of_series,
        bulk_changes,
        repeated_creations,
        endless_logs,
        unfinished_uploads,
        open_answers,
        damaged_files,
    )
}
