"""`callboard up`: a whole installation on this machine, ended with its terminal."""

import logging
import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from time import monotonic
from types import FrameType

import httpx
import typer

from backend.auth import service as auth
from backend.cli import embedded_redis
from backend.cli.bind import refuse_open_door
from backend.cli.children import Child
from backend.cli.database import upgrade
from backend.cli.installation import Installation
from backend.cli.terminal import fail
from backend.db.engine import make_engine, writing
from backend.settings import Settings

START_TIMEOUT_S = 120.0
TEND_INTERVAL_S = 0.5
WEB_PATIENCE_S = 30.0
"""How long the web process may leave /healthz unanswered before it is started again."""
STOP_TIMEOUT_S = 12.0
"""A worker is gone within 10 s."""


def run(settings: Settings) -> None:
    """Start everything, say where it is, and keep it running until SIGINT, SIGTERM or SIGHUP."""
    # The children log to files; the terminal gets what a person should read.
    for chatty in ("httpx", "alembic"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    settings.home_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    installation = Installation(settings.home_dir)
    if not installation.take():
        _greet_again(settings, installation)
        return
    try:
        upgrade(settings)
        refuse_open_door(settings)
        with _listen(settings) as listener:
            url = _url(listener)
            _tend(settings, installation, listener, url)
    finally:
        installation.release()


def login_url(settings: Settings, url: str) -> str:
    """An address that logs the owner in, once."""
    engine = make_engine(settings.database)
    with writing(engine) as session:
        token = auth.create_login_link(session)
    engine.dispose()
    return f"{url}/login?token={token}"


def _greet_again(settings: Settings, installation: Installation) -> None:
    running = installation.running()
    if running is None or running.url is None:
        raise fail(f"another `callboard up` is just starting or ending in {settings.home_dir}", 1)
    typer.echo(f"Callboard already runs here, as process {running.pid}.\n")
    typer.echo(f"  Open   {login_url(settings, running.url)}")


def _listen(settings: Settings) -> socket.socket:
    """The web process's socket, made here so that its port outlives a restart and is known at once."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(address[:2], family=family, backlog=2048)
    except OSError as error:
        where = f"port {settings.port} of {settings.host}"
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise fail(f"{where}: {why}; CALLBOARD_PORT names another port, 0 any free one") from None


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # noqa: S104 - to tell it, not to bind it
        host = "localhost"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _children(settings: Settings, listener: socket.socket, url: str) -> list[Child]:
    logs = settings.home_dir / "logs"
    environment = os.environ | {
        "CALLBOARD_HOME": str(settings.home_dir),
        "CALLBOARD_REDIS_URL": settings.redis,
        "CALLBOARD_PORT": str(listener.getsockname()[1]),
    }
    callboard = [sys.executable, "-m", "backend.cli.main"]
    children = []
    if settings.redis_url is None:
        embedded_redis.make_socket_folder(settings.redis_socket)
        children.append(
            Child(
                "redis",
                embedded_redis.command(settings.redis_socket),
                environment=environment,
                log_file=logs / "redis.log",
                healthy=lambda: embedded_redis.answers(settings.redis),
            )
        )
    children.append(
        Child(
            "web",
            [*callboard, "web", "--fd", str(listener.fileno())],
            environment=environment,
            log_file=logs / "web.log",
            healthy=lambda: _answers(f"{url}/healthz"),
            patience_s=WEB_PATIENCE_S,
            pass_fds=[listener.fileno()],
        )
    )
    worker_log = logs / "worker.log"
    children.append(Child("worker", [*callboard, "worker"], environment=environment, log_file=worker_log))
    return children


def _tend(settings: Settings, installation: Installation, listener: socket.socket, url: str) -> None:
    """Start the children, wait until they answer, keep them running, end them in order."""
    asked_to_end = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        asked_to_end.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, on_signal)
    children = _children(settings, listener, url)
    try:
        for child in children:
            child.start()
        _wait_until_ready(children, url, asked_to_end)
        if not asked_to_end.is_set():
            installation.note(url)
            _greet(settings, url)
        while not asked_to_end.wait(TEND_INTERVAL_S):
            for child in children:
                child.tend()
    finally:
        _end(children)


def _wait_until_ready(children: list[Child], url: str, asked_to_end: threading.Event) -> None:
    ends_at = monotonic() + START_TIMEOUT_S
    while not asked_to_end.wait(0.1) and not _answers(f"{url}/readyz"):
        for child in children:
            if child.exit_status is not None:
                raise fail(f"the {child.name} process ended while starting:\n{child.last_lines()}", 1)
        if monotonic() > ends_at:
            raise fail(f"no answer within {START_TIMEOUT_S:.0f} s; see {children[0].log_file.parent}", 1)


def _greet(settings: Settings, url: str) -> None:
    typer.echo(
        f"Callboard is ready.\n\n"
        f"  Open   {login_url(settings, url)}\n"
        f"         (logs you in once; `callboard login-link` makes another)\n"
        f"  Later  {url}\n"
        f"  State  {settings.home_dir}\n\n"
        f"Control-C stops it; runs go on from their checkpoints next time."
    )


def _end(children: list[Child]) -> None:
    """The worker and the web process together, then what they stand on."""
    ends_at = monotonic() + STOP_TIMEOUT_S
    leaving = [child for child in children if child.name != "redis"]
    for child in leaving:
        child.ask_to_end()
    for child in leaving:
        child.end(ends_at - monotonic())
    for child in children:
        child.ask_to_end()
        child.end(3.0)


def _answers(url: str) -> bool:
    with suppress(httpx.HTTPError):
        return httpx.get(url, timeout=2.0).status_code == httpx.codes.OK
    return False
