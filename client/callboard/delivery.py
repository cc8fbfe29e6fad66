"""Sends a spool's batches to its server, in order and exactly once.

It starts no threads: `callboard sync` uses it as well as the thread of `background`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from callboard.display import counted
from callboard.errors import Rejected, RequestTooLarge, Unreachable
from callboard.limits import MAX_OUTPUT_CHARACTERS
from callboard.manifest import Manifest
from callboard.rows import dumps
from callboard.set_aside import DAMAGED
from callboard.spool import FILE_KINDS, Request, Spool
from callboard.transport import Transport
from callboard.uploading import CopyUnreadable, FileUpload, call_with_access

_PATHS = {
    "points": "points",
    "episodes": "episodes",
    "histograms": "histograms",
    "log": "log",
    "config": "config",
    "state": "heartbeat",
    "provenance": "provenance",
    "checkpoint": "checkpoints",
    "video": "videos",
    "media": "media",
}
_ROWS_FIELD = {"points": "series", "episodes": "episodes", "histograms": "histograms", "log": "lines"}
"""The field of the body that holds the rows, by kind of request."""
_ENDS_RUN = frozenset({(404, "run_not_found"), (409, "run_not_external"), (409, "too_many_sources")})
"""Status and code of the problems after which nothing of a spool can be sent."""
_ENDS_REQUEST = frozenset({(422, "invalid_fields")})
"""Status and code of the problems after which a request cannot be sent, but the next one can."""

REFUSES_START = (
    _ENDS_RUN
    | _ENDS_REQUEST
    | frozenset({(400, "bad_request"), (401, "unauthenticated"), (403, "forbidden")})
)
"""Status and code of the problems that `callboard.init` raises immediately."""

_DROPPED = {
    "agent_steps_decrease": "agent steps that decrease",
    "too_many_metrics": "a run cannot have more metrics",
    "too_many_media": "a run has 10,000 histograms, images and tables, or 1 GiB of them, at most",
}
_DROPPED_BEFORE = "dropped by the server, whose answer was lost"


class RunUnavailable(Exception):
    """The server no longer has the run, or accepts no data for it: what is left is set aside."""


@dataclass
class Delivered:
    """What was sent."""

    n_rows: int = 0
    n_dropped: int = 0
    """Rows that the server has dropped, of the requests whose answers arrived here."""
    dropped: dict[str, int] = field(default_factory=dict)
    """All rows of the spool that the server has dropped so far, by reason. It also includes those of requests
    whose answers were lost, or were received by an earlier process."""
    n_refused: int = 0
    """Rows that the server has refused, or that are damaged: they are set aside in the spool."""


class Delivery:
    """Sends the batches of one spool."""

    def __init__(
        self,
        spool: Spool,
        transport: Transport,
        on_refused: Callable[[str, int], None],
        on_dropped: Callable[[str, int, str], None] = lambda reason, n_rows, details: None,
    ) -> None:
        """Prepare; nothing is sent.

        Args:
            spool: the spool to send.
            transport: the server to send it to.
            on_refused: called with the reason and the number of rows of a request that was refused.
            on_dropped: called with the reason, the number of rows and details of what the server has dropped.
        """
        self.delivered = Delivered()
        self.records_scripts = True
        """Whether the server stores where scripts come from, as far as it has said so."""
        self._spool = spool
        self._transport = transport
        self._on_refused = on_refused
        self._on_dropped = on_dropped
        self._file: FileUpload | None = None
        self._has_resumed = False
        """Whether the server knows that this process continues the run, even one that was stopped before."""

    def send(self) -> bool:
        """Send the next request, or the next part of its file; False if nothing is left.

        Raises:
            Unreachable: the server cannot take it now; nothing is lost.
            RunUnavailable: the server takes nothing of the spool any more, all of which is set aside.
        """
        with _oserror_as_unreachable():
            return self._send_next()

    def _send_next(self) -> bool:
        run_id = self.ensure_run()
        request = self._spool.next()
        if n_damaged := self._spool.take_damaged():
            self.delivered.n_refused += n_damaged
            self._on_refused(DAMAGED, n_damaged)
        if request is None:
            return False
        try:
            if request.kind in FILE_KINDS and self._send_part(run_id, request):
                return True
            request, answer = self._post(run_id, request)
        except CopyUnreadable as error:
            self._set_aside(request, str(error))
            return True
        except (RequestTooLarge, Rejected) as error:
            if request.kind == "provenance" and self._is_refused_alone(error):
                self._confirm(request, stored=False)  # it must not keep the values behind it waiting
                return True
            if isinstance(error, Rejected):
                self._handle_rejection(error, request)
                return True
            if request.n_rows < 2 or request.kind not in _ROWS_FIELD:
                raise  # it cannot be halved; it is an `Unreachable`
            self._resolve_too_large(run_id, request)
            return True
        # Counted first: a caller that waits for the spool to be empty reads the counts next.
        self.delivered.n_rows += request.n_rows
        self._count_dropped(answer)
        # The server may be one ahead: it stored `_resolve_too_large`'s empty batch, whose answer was lost.
        request = replace(request, sequence=answer.get("sequence", request.sequence))
        self._confirm(request, stored=request.kind != "state")  # a state has no number
        return True

    def _is_refused_alone(self, error: RequestTooLarge | Rejected) -> bool:
        """Whether a request is too large for a proxy, or nothing that this server knows."""
        if isinstance(error, RequestTooLarge):
            return True
        is_of_run = (error.status, error.code) in _ENDS_RUN
        return error.status in (404, 405, 422) and not is_of_run

    def _handle_rejection(self, error: Rejected, request: Request) -> None:
        """Set the request aside if the server never accepts it.

        Raises:
            Unreachable: the server may accept it later.
            RunUnavailable: the server accepts nothing of the spool.
        """
        self._raise_if_run_refused(error)
        if (error.status, error.code) not in _ENDS_REQUEST:
            self._file = None  # the server may have lost it
            raise Unreachable(str(error)) from None
        self._set_aside(request, str(error))

    def _raise_if_run_refused(self, error: Rejected, more: frozenset[tuple[int, str]] = frozenset()) -> None:
        """Set aside what is left of the spool if the server accepts nothing of it.

        Raises:
            RunUnavailable: the server accepts nothing of it.
        """
        if (error.status, error.code) in _ENDS_RUN | more:
            with _oserror_as_unreachable():
                self._spool.refuse_all(str(error))
            raise RunUnavailable(str(error)) from None

    def _resolve_too_large(self, run_id: str, request: Request) -> None:
        """Handle a request that is too large: confirm it if an earlier attempt stored it, else halve it.

        An empty batch with the next number shows which: the server accepts it only after the request.
        """
        batch = replace(request, sequence=request.sequence + 1, rows=b"[]")
        path = f"runs/{run_id}/{_PATHS[request.kind]}"
        send = partial(self._transport.request, "POST", path, content=self._body(batch))
        try:
            answer = self._validate_stored(request, call_with_access(send))
        except Rejected as error:
            self._raise_if_run_refused(error)
            if error.code != "batch_missing" or not 0 < (error.expected or 0) <= request.sequence:
                raise Unreachable(str(error)) from None
            self._spool.halve(self._spool.renumber(request, error.expected or 1))
        else:
            self.delivered.n_rows += request.n_rows
            self._count_dropped(answer)
            self._confirm(replace(request, sequence=answer["sequence"]), stored=True)

    def _count_dropped(self, answer: dict[str, Any]) -> None:
        """Count what the server has dropped; `dropped_in_all` includes what lost answers reported."""
        dropped = self.delivered.dropped
        self.delivered.n_dropped += answer.get("dropped", 0)
        for part in answer.get("dropped_rows", ()):
            reason, n_rows = _DROPPED.get(part["reason"], str(part["reason"])), int(part["rows"])
            dropped[reason] = dropped.get(reason, 0) + n_rows
            self._on_dropped(reason, n_rows, self._format_drop(part))
        n_before = answer.get("dropped_in_all", 0) - sum(dropped.values())
        if n_before > 0:
            dropped[_DROPPED_BEFORE] = dropped.get(_DROPPED_BEFORE, 0) + n_before
            self._on_dropped(_DROPPED_BEFORE, n_before, counted(n_before, "value"))

    def _format_drop(self, part: dict[str, Any]) -> str:
        what = "item" if part["reason"] == "too_many_media" else "value"
        text = f"{counted(int(part['rows']), what)}, the first of {part['metric']}"
        if part["reason"] != "agent_steps_decrease":
            return text
        reached, run = int(part["agent_steps"]), self._spool.manifest.run
        again = f'callboard.init(id="{run}", rewind_to=...)'
        return f"{text}: it has reached {reached:,} agent steps; to continue from older ones: {again}"

    def _validate_stored(self, request: Request, answer: Any) -> dict[str, Any]:
        """Return the answer if it confirms that the request is stored.

        Raises:
            Unreachable: the answer does not confirm it.
        """
        if request.kind == "state":
            return self._transport.validate_answer(answer, state=str, stop_requested=bool)
        stored = self._transport.validate_answer(answer, sequence=int, stored=int, dropped=int)
        if stored["sequence"] < request.sequence:
            raise Unreachable(f"batch {stored['sequence']} is stored, not {request.sequence}")
        return stored

    def _set_aside(self, request: Request, reason: str) -> None:
        """Set a refused request aside in the spool."""
        self._file = None
        # Counted first: a caller that waits for the spool to be empty reads the counts next.
        self.delivered.n_refused += request.n_rows
        try:
            self._spool.refuse(request, reason)
        except OSError:
            self.delivered.n_refused -= request.n_rows
            raise
        self._on_refused(reason, request.n_rows)

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
        """Report that the script is running; return whether the run is to be stopped.

        Raises:
            Unreachable: the server cannot take it now.
            RunUnavailable: the run was deleted.
        """
        with _oserror_as_unreachable():
            path = f"runs/{self.ensure_run()}/heartbeat"
        try:
            body = {"state": "running", "resume": not self._has_resumed}
            answer = call_with_access(partial(self._transport.request, "POST", path, body=body))
        except Rejected as error:
            self._raise_if_run_refused(error)
            raise Unreachable(str(error)) from None
        stop_requested = self._transport.validate_answer(answer, state=str, stop_requested=bool)[
            "stop_requested"
        ]
        self._has_resumed = True
        self.records_scripts = answer.get("records_scripts") is not False
        return bool(stop_requested)

    def ensure_run(self) -> str:
        """Create the run, or rewind it, if the server could not be reached before; return its id.

        Raises:
            Unreachable: the server cannot take it now.
            RunUnavailable: the server refuses to create the run.
        """
        manifest = self._spool.manifest
        if manifest.run is not None and manifest.rewind_to is not None:
            self._rewind(manifest.run, manifest.rewind_to)
        if manifest.run is None:
            try:
                run, self.records_scripts = call_with_access(partial(create_run, self._transport, manifest))
            except Rejected as error:
                self._raise_if_run_refused(error, _ENDS_REQUEST)
                raise Unreachable(str(error)) from None
            manifest = replace(manifest, run=run)
            self._spool.set_manifest(manifest)
        assert manifest.run is not None
        return manifest.run

    def _rewind(self, run_id: str, agent_steps: int) -> None:
        """Have the server set aside what the run has after these agent steps, before anything is sent.

        Raises:
            Unreachable: the server cannot take it now.
            RunUnavailable: the run was deleted.
        """
        body = {"state": "running", "rewind_to": agent_steps}
        try:
            answer = call_with_access(
                partial(self._transport.request, "POST", f"runs/{run_id}/heartbeat", body=body)
            )
        except Rejected as error:
            self._raise_if_run_refused(error)
            raise Unreachable(str(error)) from None
        self._transport.validate_answer(answer, state=str, stop_requested=bool)
        self._spool.set_manifest(replace(self._spool.manifest, rewind_to=None))

    def _post(self, run_id: str, request: Request) -> tuple[Request, dict[str, Any]]:
        """Send a request; return it with the sequence number under which the server stored it, and the
        answer.

        Raises:
            Rejected: the server refuses it.
            Unreachable: the server cannot take it now.
        """
        path = f"runs/{run_id}/{_PATHS[request.kind]}"
        while True:
            content = self._body(request)
            try:
                answer = call_with_access(partial(self._transport.request, "POST", path, content=content))
                return request, self._validate_stored(request, answer)
            except Rejected as error:
                # A server restored from a backup expects less than it had confirmed.
                if error.code != "batch_missing" or not 0 < (error.expected or 0) < request.sequence:
                    raise
                request = self._spool.renumber(request, error.expected or 1)

    def _body(self, request: Request) -> bytes:
        if request.kind == "state":
            [state] = json.loads(request.rows)
            return json.dumps(state).encode()
        if request.kind == "config":
            [fields] = json.loads(request.rows)
            batch = {"source": self._spool.manifest.source, "sequence": request.sequence}
            return json.dumps(batch | fields).encode()
        if request.kind == "provenance":
            sent = json.loads(request.rows)
            output = "".join(fields.get("output", "") for fields in sent)[-MAX_OUTPUT_CHARACTERS:]
            described = [fields for fields in sent if "provenance" in fields]
            batch = {"source": self._spool.manifest.source, "sequence": request.sequence, "output": output}
            return dumps({**batch, **({"provenance": described[-1]["provenance"]} if described else {})})
        if request.kind in FILE_KINDS:
            assert self._file is not None
            [fields] = json.loads(request.rows)
            batch = {"source": self._spool.manifest.source, "sequence": request.sequence}
            return json.dumps(batch | fields | self._file.checksum()).encode()
        source, name = self._spool.manifest.source, _ROWS_FIELD[request.kind]
        return b'{"source":"%s","sequence":%d,"%s":%s}' % (
            source.encode(),
            request.sequence,
            name.encode(),
            request.rows,
        )


@contextmanager
def _oserror_as_unreachable() -> Iterator[None]:
    """Raise `Unreachable` for an `OSError` of the spool: unconfirmed rows are sent again."""
    try:
        yield
    except OSError as error:
        raise Unreachable(f"the spool cannot be written: {error}") from error


def create_run(transport: Transport, manifest: Manifest) -> tuple[str, bool]:
    """Create the run of a spool; its id, and whether the server stores where scripts come from.

    The same spool creates one run, however often one user calls this within a day: the server keeps the keys
    of requests that long.

    Raises:
        Unreachable: the server cannot take it now.
        Rejected: the server refuses it.
    """
    answer = transport.request("POST", "runs", body=manifest.create, idempotency_key=manifest.source)
    items = transport.validate_answer(answer, items=list)["items"]
    run = transport.validate_answer(items[0] if len(items) == 1 else None, id=str)
    return str(run["id"]), answer.get("records_scripts") is not False
