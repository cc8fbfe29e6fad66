"""Servers that stand in front of Callboard and beside it: nginx, Caddy, PgBouncer, Prometheus, Redis.

`make test-long` runs this module: what the machine lacks is downloaded by apt and unpacked in `.servers`,
neither installed nor started. Tests of what could not be got are skipped, and it is printed.
"""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import pytest

FOLDER = Path(__file__).parents[2] / ".servers"
PACKAGES = {
    "nginx": "nginx",
    "caddy": "caddy",
    "pgbouncer": "pgbouncer",
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "redis-cli": "redis-tools",
    "redis-server": "redis-server",
}
"""Debian's package of each program."""

PLACES = [FOLDER / "usr" / name for name in ("sbin", "bin")]
DOWNLOAD = ["apt-get", "-qq", "install", "--download-only", "--yes", "--no-install-recommends"]
DOWNLOAD += ["-o", f"Dir::Cache::archives={FOLDER / 'archives'}", "-o", "Debug::NoLocking=1"]
DOWNLOAD += ["-o", "Acquire::Retries=3", "-o", "Acquire::http::Timeout=60"]
TIMEOUT_S = 600


def find(program: str) -> str | None:
    """The path of a program: of the machine, or unpacked by `main`."""
    places = [os.environ.get("PATH", ""), "/usr/sbin", *map(str, PLACES)]
    return shutil.which(program, path=os.pathsep.join(places))


def required(program: str) -> str:
    """The path of a program; skips the test where it could not be got."""
    path = find(program)
    if path is None:
        pytest.skip(f"{program} could not be got: install the package {PACKAGES[program]!r}")
    return path


def environment() -> dict[str, str]:
    """The variables by which an unpacked program finds the libraries that came with it."""
    libraries = [str(path) for path in (FOLDER / "usr" / "lib").glob("*-linux-*") if path.is_dir()]
    given = os.environ.get("LD_LIBRARY_PATH")
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join([*libraries, *([given] if given else [])])}


def free_port() -> int:
    """A port at which nobody listens, for a server that takes one as a number."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
    return port


@contextmanager
def running(
    command: list[str],
    log: Path,
    variables: Mapping[str, str] = MappingProxyType({}),
    *,
    cwd: Path | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server, with what it prints in a file, and end it."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env={**environment(), **variables}, cwd=cwd, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> None:
    """Download and unpack what the machine lacks; print what cannot be got."""
    for package in sorted({PACKAGES[program] for program in PACKAGES if find(program) is None}):
        if problem := _unpack(package):
            print(f"{package} could not be got, and its tests are skipped: {problem}")


def _unpack(package: str) -> str | None:
    """Download a package and what it needs, and unpack them; returns what prevented it."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        return f"install the package {package!r}"
    archives = FOLDER / "archives"
    shutil.rmtree(archives, ignore_errors=True)
    (archives / "partial").mkdir(parents=True)
    update = ["apt-get", "-qq", "update"] if os.geteuid() == 0 else ["true"]
    for command in (update, [*DOWNLOAD, package]):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            return f"{command[0]} took longer than {TIMEOUT_S} s"
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if line.startswith("E:")]
            return (lines or [f"{' '.join(command[:3])} exited with {done.returncode}"])[-1]
    for archive in archives.glob("*.deb"):
        subprocess.run(["dpkg-deb", "--extract", archive, FOLDER], check=True)
    for unused in (archives, FOLDER / "usr" / "share"):
        shutil.rmtree(unused, ignore_errors=True)
    return None


if __name__ == "__main__":
    main()
