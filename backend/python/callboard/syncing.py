"""Sends what earlier scripts have left in their spools: `callboard.sync`."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from callboard.delivery import Delivery, RunUnavailable
from callboard.errors import NotConfigured, Unreachable
from callboard.spool import Manifest, Spool
from callboard.transport import Server, Transport, find_server, spool_root


@dataclass
class Synced:
    """What `sync` has done."""

    n_spools: int = 0
    """Spools that were sent as a whole, and deleted."""
    n_rows: int = 0
    """Values, episodes and log lines that were sent."""
    n_refused: int = 0
    """Those that the server has refused; they are deleted."""
    n_remaining: int = 0
    """Spools that cannot be sent now."""
    problems: list[str] = field(default_factory=list)
    """Why spools remain, or could not be sent; one line each."""


def sync(
    folder: str | Path | None = None,
    *,
    url: str | None = None,
    token: str | None = None,
    run: str | None = None,
) -> Synced:
    """Send what scripts have logged and not sent: they were killed, or the server could not be reached.

    The spools of scripts that still run are left alone.

    Args:
        folder: of the spools; default: `CALLBOARD_HOME/spool`, else `~/.cache/callboard/spool`.
        url: address of the server; default: the one that each script logged to.
        token: API token; default: `CALLBOARD_TOKEN`, else that of this machine's installation.
        run: only what belongs to the run with this id.
    """
    done = Synced()
    root = spool_root() if folder is None else Path(folder)
    transports: dict[str, Transport] = {}
    try:
        for path in sorted(root.iterdir()) if root.is_dir() else ():
            spool = Spool.open(path)
            if spool is None:
                continue
            if run is not None and spool.manifest.run != run:
                spool.close()
                continue
            _send(spool, transports, url, token, done)
    finally:
        for transport in transports.values():
            transport.close()
    return done


def _send(
    spool: Spool, transports: dict[str, Transport], url: str | None, token: str | None, done: Synced
) -> None:
    name = f"run {spool.manifest.run or spool.manifest.name}"

    def refused(reason: str, n_rows: int) -> None:
        done.n_refused += n_rows
        done.problems.append(f"{name}: the server has refused {n_rows} rows: {reason}")

    try:
        server = _server(spool.manifest, url, token)
        if server.url not in transports:
            transports[server.url] = Transport(server)
        delivery = Delivery(spool, transports[server.url], refused)
        try:
            while delivery.send():
                pass
        finally:
            done.n_rows += delivery.delivered.n_rows
    except (Unreachable, NotConfigured) as error:
        done.problems.append(f"{name}: {error}")
        done.n_remaining += 1
        spool.close()
    except RunUnavailable as error:
        done.problems.append(f"{name}: deleted unsent: the server no longer accepts data for it: {error}")
        spool.remove()
    else:
        done.n_spools += 1
        spool.remove()


def _server(manifest: Manifest, url: str | None, token: str | None) -> Server:
    """The given server, else the one that the script logged to.

    Raises:
        NotConfigured: no token is known for it.
    """
    named = os.environ.get("CALLBOARD_URL")
    if url is None and named and named.rstrip("/") != manifest.url:
        raise NotConfigured(f"it was logged to {manifest.url}, not to CALLBOARD_URL: set that to it")
    return find_server(url or manifest.url, token)
