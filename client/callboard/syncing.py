"""Sends what earlier scripts have left in their spools: `callboard.sync`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from callboard.delivery import Delivery, RunUnavailable
from callboard.errors import NotConfigured, Unreachable
from callboard.manifest import Manifest, SpoolUnavailable, SpoolUnreadable, count_rows_in, run_at
from callboard.spool import Spool
from callboard.transport import Server, Transport, address_of, find_server, spool_root


@dataclass
class Synced:
    """What `sync` has done."""

    n_spools: int = 0
    """Spools that were sent as a whole, and deleted."""
    n_rows: int = 0
    """Values, episodes and log lines that were sent."""
    n_dropped: int = 0
    """Rows of those sent that the server has dropped, because their agent steps decrease, for example."""
    n_refused: int = 0
    """Rows of requests that the server has refused now, or that are damaged; they are set aside. Those of a
    run of which it accepts nothing any more are in `refused` alone."""
    n_remaining: int = 0
    """Spools that cannot be sent now."""
    in_use: set[str] = field(default_factory=set)
    """Ids of the runs of which a process uses a spool: it sends that itself."""
    problems: list[str] = field(default_factory=list)
    """Why spools remain that can be read; one line each. Those that cannot be read are in `refused`."""
    refused: list[Refused] = field(default_factory=list)
    """What the server has refused, now or earlier, and what cannot be read, unless somebody has discarded
    it."""


@dataclass(frozen=True)
class Refused:
    """What is set aside of what one process has logged: the server has refused it, or it cannot be read.

    It is kept until it is discarded.
    """

    run: str
    """Id of the run, its name if the server has not created it, or the folder's name if it is not known."""
    n_rows: int
    """Values, episodes, log lines and files; of what cannot be read, an estimate."""
    reason: str
    """The server's, or what is wrong with the file."""
    folder: Path
    """Where it is."""
    is_kept: bool = False
    """Whether it cannot be discarded now: it may be whole, and in use."""


def sync(
    folder: str | Path | None = None,
    *,
    url: str | None = None,
    token: str | None = None,
    run: str | None = None,
) -> Synced:
    """Send what scripts have logged and not sent: they were killed, or the server could not be reached.

    The spools of scripts that still run are left alone. What the server refuses is set aside and listed.

    Args:
        folder: folder of the spools; default: `CALLBOARD_HOME/spool`, else `~/.cache/callboard/spool`.
        url: address of the server; default: the one that each script logged to.
        token: API token; default: `CALLBOARD_TOKEN`, else that of this machine's installation.
        run: only what belongs to the run with this id.
    """
    done = Synced()
    transports: dict[str, Transport] = {}
    blocked: set[str] = set()
    unreadable: list[Refused] = []
    try:
        for spool in _spools(folder, unreadable, done.in_use):
            blocked |= done.in_use
            if run is not None and spool.manifest.run != run:
                spool.close()
                continue
            _send(spool, transports, blocked, url, token, done)
        if run is None:
            done.refused += unreadable
            done.n_remaining += len(unreadable)
    finally:
        for transport in transports.values():
            transport.close()
    return done


def refused(folder: str | Path | None = None, *, run: str | None = None) -> list[Refused]:
    """What the server has refused, and what cannot be read, unless somebody has discarded it.

    Args:
        folder: folder of the spools, as in `sync`.
        run: only what belongs to the run, as `Refused` names it.
    """
    kept: list[Refused] = []
    unreadable: list[Refused] = []
    for spool in _spools(folder, unreadable):
        if run is None or _run_of(spool) == run:
            kept += _refused(spool)
        spool.close()
    return kept + [part for part in unreadable if run in (None, part.run)]


def discard(run: str, folder: str | Path | None = None) -> int:
    """Delete what is set aside of a run; returns how many rows. What can be sent is kept.

    Args:
        run: the run, as `Refused` names it.
        folder: folder of the spools, as in `sync`.
    """
    n_rows = 0
    unreadable: list[Refused] = []
    for spool in _spools(folder, unreadable):
        if _run_of(spool) == run and (kept := _refused(spool)):
            n_rows += sum(rejection.n_rows for rejection in kept)
            spool.discard()
            if spool.is_empty:
                spool.remove()
        spool.close()
    for part in unreadable:
        if part.run == run and not part.is_kept:
            n_rows += part.n_rows
            shutil.rmtree(part.folder, ignore_errors=True)
    return n_rows


def waiting_steps(run: str) -> int:
    """The most agent steps of a run that earlier processes have logged and not sent; 0 if there are none."""
    latest = 0
    for spool in _spools(None, []):
        if spool.manifest.run == run and not spool.is_refused:
            latest = max(latest, spool.latest_steps())
        spool.close()
    return latest


def _spools(
    folder: str | Path | None, unreadable: list[Refused], in_use: set[str] | None = None
) -> Iterator[Spool]:
    """The spools that no process uses, locked, the earliest first.

    Args:
        folder: as in `sync`.
        unreadable: those that cannot be read are added.
        in_use: the runs of those that a process uses, or that are not available at present, are added.
    """
    try:
        root = spool_root() if folder is None else Path(folder)
    except OSError:  # without a home, spools are in folders of their own
        return
    for path in sorted(root.iterdir()) if root.is_dir() else ():
        try:
            spool = Spool.open(path)
        except SpoolUnreadable as error:
            is_kept = isinstance(error, SpoolUnavailable)
            unreadable.append(Refused(path.name, count_rows_in(path), str(error), path, is_kept))
            if not is_kept:
                continue
            spool = None
        if spool is not None:
            yield spool
        elif in_use is not None and (run := run_at(path)) is not None:
            in_use.add(run)


def _run_of(spool: Spool) -> str:
    return spool.manifest.run or spool.manifest.name


def _refused(spool: Spool) -> list[Refused]:
    return [
        Refused(_run_of(spool), n_rows, reason, spool.folder) for reason, n_rows in spool.refusals().items()
    ]


def _send(
    spool: Spool,
    transports: dict[str, Transport],
    blocked: set[str],
    url: str | None,
    token: str | None,
    done: Synced,
) -> None:
    """Send a spool, and add the result to `done`.

    Args:
        spool: what to send.
        transports: connections by address; a new one is added.
        blocked: runs of which an earlier spool remains, is used by a process or is not available; the run of
            this one is added if it remains, too. The server would drop the values of an earlier spool that
            come after those of a later one.
        url: as in `sync`.
        token: as in `sync`.
        done: results of all spools.
    """
    name = f"run {_run_of(spool)}"

    def count_refused(reason: str, n_rows: int) -> None:
        done.n_refused += n_rows

    try:
        if not spool.is_refused:
            if spool.manifest.run in blocked:
                raise Unreachable("an earlier part of this run must be sent first")
            server = _server(spool.manifest, url, token)
            if server.url not in transports:
                transports[server.url] = Transport(server)
            delivery = Delivery(spool, transports[server.url], count_refused)
            try:
                while delivery.send():
                    pass
            finally:
                done.n_rows += delivery.delivered.n_rows
                done.n_dropped += delivery.delivered.n_dropped
    except RunUnavailable:
        pass  # what is left is set aside now
    except Exception as error:  # whatever goes wrong with one spool, the others are sent
        done.problems.append(f"{name}: {str(error) or type(error).__name__}")
        done.n_remaining += 1
        done.refused += _refused(spool)
        if spool.manifest.run is not None:
            blocked.add(spool.manifest.run)
        spool.close()
        return
    kept = _refused(spool)
    done.refused += kept
    if spool.finish():
        done.n_spools += 1


def _server(manifest: Manifest, url: str | None, token: str | None) -> Server:
    """The given server, else the one that the script logged to.

    Raises:
        NotConfigured: `CALLBOARD_URL` names another server, or no token is known for it.
    """
    named = os.environ.get("CALLBOARD_URL", "").strip()
    if url is None and named and address_of(named, "CALLBOARD_URL") != manifest.url:
        raise NotConfigured(
            f"it was logged to {manifest.url}, not to CALLBOARD_URL: set that to this address, or, if the "
            "script had a wrong one, send it to the right one: `callboard sync --url ADDRESS`"
        )
    return find_server(url or manifest.url, token)
