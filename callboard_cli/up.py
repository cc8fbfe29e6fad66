"""`callboard up`: a complete installation on this machine, which stops with its terminal."""

import errno
import logging
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from functools import partial
from time import monotonic
from types import FrameType

import httpx
import typer
from sqlalchemy.exc import SQLAlchemyError

from backend.access.audit import service as audit
from backend.access.auth import service as auth
from backend.db.engine import make_engine, opened, reading, writing
from backend.fleet.hosts import service as hosts
from backend.platform.settings import Settings
from callboard_cli import called_as, fail, servers
from callboard_cli.children import ServiceProcess
from callboard_cli.database import require_schema, upgrade
from callboard_cli.demo import add_demo_run
from callboard_cli.home import make_home
from callboard_cli.installation import Installation
from callboard_cli.listening import listen, refuse_open_bind, url_of
from callboard_cli.remote import LocalToken

START_TIMEOUT_S = 300.0
QUIET_S = 10.0
"""Time without a ready web process after which the terminal shows the last problem."""
CHECK_INTERVAL_S = 0.5
WEB_UNHEALTHY_TIMEOUT_S = 30.0
"""How long /healthz may fail before the web process is restarted: counted from the last check that
succeeded, and each check that fails adds at most 10 s."""
WORKER_SILENT_LEASES = 4
"""A worker is restarted when its checks have failed for this many leases. They begin to fail when it counts
as offline, after `ALIVE_LEASES` leases without a heartbeat. A worker needs less time to start."""
LOCK_WAIT_S = 1.0
STOP_TIMEOUT_S = 12.0
"""A worker exits within 10 s."""
REDIS_STOP_TIMEOUT_S = 10.0


def run(settings: Settings) -> None:
    """Start everything, print its address, and keep it running until SIGINT, SIGTERM or SIGHUP."""
    # The children log to files; the terminal shows only messages for the user.
    for logger in ("httpx", "alembic"):
        logging.getLogger(logger).setLevel(logging.WARNING)
    make_home(settings.home_dir)
    installation = Installation(settings)
    try:
        is_first = installation.acquire()
    except OSError as error:
        raise fail(f"{settings.home_dir}: {error.strerror}; {_hint(error)}", 1) from None
    if not is_first:
        _print_already_running(settings, installation)
        return
    try:
        upgrade(settings)
        refuse_open_bind(settings)
        if settings.demo:
            add_demo_run(settings)
        with listen(settings) as listener:
            url = url_of(*listener.getsockname()[:2])
            _supervise(settings, installation, listener, url)
    except servers.UnsafeFolder as error:
        raise fail(str(error), 1) from None
    finally:
        installation.release()


def _hint(error: OSError) -> str:
    """What to do about a home whose file cannot be written or locked."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "free some space"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR):
        return "make it writable, or set CALLBOARD_HOME to another folder"
    return "set CALLBOARD_HOME to a folder whose files can be locked, such as one on a local disk"


def login_url(settings: Settings, url: str) -> str:
    """A login link of the owner that works once."""
    require_schema(settings)
    with opened(settings.database) as db_engine, writing(db_engine) as session:
        token = auth.create_login_link(session)
        audit.record_command(session, "callboard login-link", "create_login_link")
    return f"{url}{settings.prefix}/login?token={token}"


def _print_already_running(settings: Settings, installation: Installation) -> None:
    running = installation.running()
    if running is None or running.url is None:
        raise fail(
            f"another `callboard up` is starting or stopping in {settings.home_dir}, or a backup is being "
            "restored; try again in a moment",
            1,
        )
    running.require_database(settings)
    typer.echo(f"Callboard is already running here, as process {running.pid}.\n")
    typer.echo(f"  Open   {login_url(settings, running.url)}")


def _children(settings: Settings, listener: socket.socket, url: str) -> list[ServiceProcess]:
    logs = settings.home_dir / "logs"
    environment = os.environ | {
        "CALLBOARD_HOME": str(settings.home_dir),
        "CALLBOARD_REDIS_URL": settings.redis,
        "CALLBOARD_PORT": str(listener.getsockname()[1]),
    }
    callboard = [sys.executable, "-m", "callboard_cli.main"]
    record = partial(_record_restart, settings)
    children = []
    if settings.redis_url is None:
        servers.create_socket_folder(settings.redis_socket)
        children.append(
            ServiceProcess(
                "redis",
                servers.redis_command(settings.redis_socket),
                environment=environment,
                log_file=logs / "redis.log",
                healthy=lambda: servers.redis_answers(settings.redis),
                on_restart=record,
            )
        )
    children.append(
        ServiceProcess(
            "web",
            [*callboard, "web", "--fd", str(listener.fileno())],
            environment=environment,
            log_file=logs / "web.log",
            healthy=lambda: _answers(f"{url}/healthz"),
            on_restart=record,
            unhealthy_timeout_s=WEB_UNHEALTHY_TIMEOUT_S,
            pass_fds=[listener.fileno()],
        )
    )
    heartbeat = WorkerHeartbeat(settings)
    children.append(
        ServiceProcess(
            "worker",
            # A worker that outlives a killed `callboard up` may still save its runs.
            [*callboard, "worker", "--wait-for-name", str(STOP_TIMEOUT_S)],
            environment=environment,
            log_file=logs / "worker.log",
            healthy=heartbeat.is_recent,
            on_restart=record,
            unhealthy_timeout_s=WORKER_SILENT_LEASES * settings.lease_s,
        )
    )
    return children


def _record_restart(settings: Settings, child: str, reason: str) -> None:
    """Record in the audit trail that a child was restarted: its terminal may be gone."""
    details = {"process": child, "reason": reason}
    with opened(settings.database) as db_engine, writing(db_engine, wait_s=LOCK_WAIT_S) as session:
        audit.record_command(session, "callboard up", "restart_process", details)


class WorkerHeartbeat:
    """The heartbeat of this machine's worker, as the database has it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._db_engine = make_engine(settings.database)

    def close(self) -> None:
        """Close the connections."""
        self._db_engine.dispose()

    def is_recent(self) -> bool:
        """Whether the worker responds; True as well while the database is unavailable or locked."""
        try:
            with reading(self._db_engine) as session:
                if hosts.is_alive(session, self._settings.host_name, self._settings.lease_s):
                    return True
            # While another process holds the lock, no worker can store a heartbeat.
            with writing(self._db_engine, wait_s=LOCK_WAIT_S) as session:
                session.connection()
            return False
        except SQLAlchemyError:
            return True


class StopSignals:
    """Whether a signal has asked to stop. Without locks: a handler that interrupts another would wait for the
    other's lock forever."""

    def __init__(self) -> None:
        self._is_set = False
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)

    def install(self) -> None:
        """Handle SIGINT, SIGTERM and SIGHUP; the last one not if `nohup` has the process ignore it."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self.handle)

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Record that a stop signal was received."""
        self._is_set = True
        with suppress(OSError):  # full: it has been written before
            os.write(self._writing, b".")

    def is_set(self) -> bool:
        """Whether a stop signal was received."""
        return self._is_set

    def wait(self, timeout_s: float) -> bool:
        """Wait for a stop signal; return whether one was received."""
        if not self._is_set:
            select.select([self._reading], [], [], timeout_s)
        return self._is_set


def _supervise(settings: Settings, installation: Installation, listener: socket.socket, url: str) -> None:
    """Start the children, wait until they are ready, keep them running, stop them in order."""
    stop_requested = StopSignals()
    stop_requested.install()
    children = _children(settings, listener, url)
    try:
        for child in children:
            child.start()
        wait_until_ready(children, url, stop_requested)
        if not stop_requested.is_set():
            installation.set_url(url)
            _keep_local_token(settings, url)  # a script may start as soon as it reads that all is ready
            _print_ready(settings, url)
        while not stop_requested.wait(CHECK_INTERVAL_S):
            for child in children:
                child.check()
    finally:
        _stop(children)


def wait_until_ready(children: list[ServiceProcess], url: str, stop_requested: StopSignals) -> None:
    """Wait until the web process is ready, or a signal asks to stop; report after a while what it answers.

    Raises:
        typer.Exit: it is not ready in time, or a child exits.
    """
    started_at, is_reported = monotonic(), False
    while not stop_requested.wait(0.1) and (problem := _problem_at(f"{url}/readyz")) is not None:
        for child in children:
            if child.exit_status is not None:
                raise fail(f"the {child.name} process exited during start-up:\n{child.last_lines()}", 1)
        if monotonic() > started_at + START_TIMEOUT_S:
            raise fail(
                f"not ready within {START_TIMEOUT_S:.0f} s: {problem}; see the logs in "
                f"{children[0].log_file.parent}",
                1,
            )
        if not is_reported and monotonic() > started_at + QUIET_S:
            is_reported = True
            typer.echo(f"Waiting for the web process. So far: {problem}", err=True)


def _print_ready(settings: Settings, url: str) -> None:
    typer.echo(
        f"Callboard is ready.\n\n"
        f"  Open   {login_url(settings, url)}\n"
        f"         (logs you in once; `{called_as()} login-link` creates another)\n"
        f"  Later  {url}{settings.prefix}\n"
        f"  State  {settings.home_dir}\n\n"
        f"Control-C stops it; runs resume from their checkpoints next time."
    )


def _keep_local_token(settings: Settings, url: str) -> None:
    """Have a valid token below home, with which scripts on this machine find the server: `LocalToken` makes
    one when the request is refused."""
    with suppress(httpx.HTTPError, SQLAlchemyError, OSError):
        query, token = {"limit": 1}, LocalToken(settings)
        httpx.get(f"{url}/api/v1/runs", params=query, auth=token, timeout=10.0, trust_env=False)


def _stop(children: list[ServiceProcess]) -> None:
    """Stop the worker and the web process together, then Redis."""
    deadline = monotonic() + STOP_TIMEOUT_S
    dependents = [child for child in children if child.name != "redis"]
    for child in dependents:
        child.terminate()
    for child in dependents:
        child.wait(deadline - monotonic())
    for child in children:
        if child.name == "redis":
            child.terminate()
            child.wait(REDIS_STOP_TIMEOUT_S)


def _answers(url: str) -> bool:
    return _problem_at(url) is None


def _problem_at(url: str) -> str | None:
    """What an address of the web process answers instead of 200; None if it answers that."""
    try:
        answer = httpx.get(url, timeout=2.0, trust_env=False)  # no proxy knows this machine's own address
    except httpx.HTTPError as error:
        return f"{url}: {error or type(error).__name__}"
    if answer.status_code == httpx.codes.OK:
        return None
    return f"{url}: {answer.status_code} {answer.text[:500]}"
