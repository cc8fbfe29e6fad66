"""Sends a spool's batches to its server, in order and each once."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from callboard.errors import Rejected, Unreachable
from callboard.spool import Manifest, Request, Spool
from callboard.transport import Transport
from callboard.uploading import FILE_KINDS, CopyUnreadable, FileUpload, permitted

_PATHS = {
    "points": "points",
    "episodes": "episodes",
    "log": "log",
    "state": "heartbeat",
    "checkpoint": "checkpoints",
    "video": "videos",
}
_COLUMNS = {"points": "series", "episodes": "episodes", "log": "lines"}
_NO_RUN = frozenset({404, 410})


class RunUnavailable(Exception):
    """The server no longer has the run, or accepts no data for it: nothing can be sent."""


@dataclass
class Delivered:
    """What was sent."""

    n_rows: int = 0
    n_dropped: int = 0
    """Rows that the server has dropped: their agent steps went back."""
    n_refused: int = 0
    """Rows of requests that the server has refused."""


class Delivery:
    """Sends the batches of one spool."""

    def __init__(self, spool: Spool, transport: Transport, on_refused: Callable[[str, int], None]) -> None:
        """Prepare; nothing is sent.

        Args:
            spool: what to send.
            transport: where to.
            on_refused: called with the reason and the number of rows of a request that was refused.
        """
        self.delivered = Delivered()
        self._spool = spool
        self._transport = transport
        self._on_refused = on_refused
        self._file: FileUpload | None = None

    def send(self) -> bool:
        """Send the next request; False if nothing is left.

        Raises:
            Unreachable: not now; nothing is lost.
            RunUnavailable: never; nothing of the spool can be sent.
        """
        with _writing():
            return self._send_next()

    def _send_next(self) -> bool:
        run_id = self.run_id()
        request = self._spool.next()
        if request is None:
            return False
        try:
            if request.kind in FILE_KINDS and self._send_part(run_id, request):
                return True
            request, answer = self._post(run_id, request)
        except CopyUnreadable as error:
            self._refused(request, str(error))
            return True
        except Rejected as error:
            if "upload" in error.fields and error.status == 409:
                self._file = None  # the server has lost it
                raise Unreachable(str(error)) from None
            ends = error.status in _NO_RUN or (error.status == 409 and request.kind != "state")
            if ends and request.kind not in FILE_KINDS:
                raise RunUnavailable(str(error)) from None
            self._refused(request, str(error))
            return True
        # Counted first: a caller that waits for the spool to be empty reads the counts next.
        self.delivered.n_rows += request.n_rows
        self.delivered.n_dropped += int(answer.get("dropped") or 0)
        self._confirm(request, stored=request.kind != "state")
        return True

    def _refused(self, request: Request, reason: str) -> None:
        self.delivered.n_refused += request.n_rows
        self._on_refused(reason, request.n_rows)
        self._confirm(request, stored=False)

    def _confirm(self, request: Request, *, stored: bool) -> None:
        upload: str | None = None
        if request.kind in FILE_KINDS:
            [fields] = json.loads(request.rows)
            upload, self._file = fields["upload"], None
        self._spool.confirm(request, stored=stored, upload=upload)

    def _send_part(self, run_id: str, request: Request) -> bool:
        """Send the next part of a request's file; False once the server has all of it."""
        [fields] = json.loads(request.rows)
        if self._file is None or self._file.upload != fields["upload"]:
            path = self._spool.file(fields["upload"])
            self._file = FileUpload(fields["upload"], path, compress=fields.get("form") == "frames")
        return self._file.send_part(self._transport, run_id)

    def heartbeat(self) -> bool:
        """Report that the script runs; whether the run is to be stopped.

        Raises:
            Unreachable: not now.
            RunUnavailable: the run was deleted.
        """
        with _writing():
            path = f"runs/{self.run_id()}/heartbeat"
        try:
            answer = permitted(partial(self._transport.request, "POST", path, body={"state": "running"}))
        except Rejected as error:
            raise RunUnavailable(str(error)) from None
        return bool(answer["stop_requested"])

    def run_id(self) -> str:
        """The run's id; creates the run if the server could not be reached before.

        Raises:
            Unreachable: not now.
            RunUnavailable: the server refuses to create the run.
        """
        manifest = self._spool.manifest
        if manifest.run is None:
            try:
                run = permitted(partial(create_run, self._transport, manifest))
            except Rejected as error:
                raise RunUnavailable(str(error)) from None
            manifest = replace(manifest, run=run)
            self._spool.set_manifest(manifest)
        assert manifest.run is not None
        return manifest.run

    def _post(self, run_id: str, request: Request) -> tuple[Request, dict[str, Any]]:
        """The answer, and the request with the number under which the server has stored it."""
        path = f"runs/{run_id}/{_PATHS[request.kind]}"
        while True:
            content = self._body(request)
            try:
                return request, permitted(partial(self._transport.request, "POST", path, content=content))
            except Rejected as error:
                # A server restored from a backup expects less than it had confirmed.
                if error.status != 409 or not 0 < (error.expected or 0) < request.sequence:
                    raise
                request = self._spool.renumber(request, error.expected or 1)

    def _body(self, request: Request) -> bytes:
        if request.kind == "state":
            [state] = json.loads(request.rows)
            return json.dumps(state).encode()
        if request.kind in FILE_KINDS:
            assert self._file is not None
            [fields] = json.loads(request.rows)
            batch = {"source": self._spool.manifest.source, "sequence": request.sequence}
            return json.dumps(batch | fields | self._file.checksum()).encode()
        source, name = self._spool.manifest.source, _COLUMNS[request.kind]
        return b'{"source":"%s","sequence":%d,"%s":%s}' % (
            source.encode(),
            request.sequence,
            name.encode(),
            request.rows,
        )


@contextmanager
def _writing() -> Iterator[None]:
    """What is being sent is recorded in the spool before; without that, it is sent later."""
    try:
        yield
    except OSError as error:
        raise Unreachable(f"the spool cannot be written: {error}") from error


def create_run(transport: Transport, manifest: Manifest) -> str:
    """Create the run of a spool; its id. The same spool creates one run, however often this is called.

    Raises:
        Unreachable: not now.
        Rejected: the server refuses it.
    """
    answer = transport.request("POST", "runs", body=manifest.create, idempotency_key=manifest.source)
    [run] = answer["items"]
    return str(run["id"])
