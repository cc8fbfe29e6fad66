"""Sweeps and studies of a server: read, wait for, stop, extend."""

from __future__ import annotations

import time
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from callboard.errors import Unreachable
from callboard.following import PATIENCE_S
from callboard.runs import Run, Runs
from callboard.spool import new_ulid
from callboard.transport import Transport

if TYPE_CHECKING:
    from typing import Self

_POLL_S = 2.0


class _Experiment:
    """Runs that the server starts. Its fields are those of the last answer: `refresh` reads them again."""

    PATH: ClassVar[str]
    """Of its kind in the REST API and on the pages."""

    def __init__(self, transport: Transport, data: dict[str, Any]) -> None:
        self._transport = transport
        self.data = data
        """It as the REST API describes it."""

    def __repr__(self) -> str:
        """Id, name and state."""
        return f"<{type(self).__name__} {self.id} {self.name!r} {self.state}>"

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.data["id"])

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.data["name"])

    @property
    def state(self) -> str:
        """`running`, `finished` or `stopped`, as of the last answer; `data["state_reason"]` says why."""
        return str(self.data["state"])

    @property
    def has_ended(self) -> bool:
        """Whether it has finished or been stopped; its runs may still save their last checkpoints."""
        return self.state != "running"

    @property
    def url(self) -> str:
        """Address of its page."""
        return f"{self._transport.server.url}/{self.PATH}/{self.id}"

    def refresh(self) -> Self:
        """Read its fields again, and return itself."""
        self.data = self._transport.request("GET", f"{self.PATH}/{self.id}")
        return self

    def wait(self, timeout_s: float | None = None) -> Self:
        """Wait until it has ended, and return itself.

        Args:
            timeout_s: how long at most; default: as long as it takes.

        Raises:
            TimeoutError: it has not, after `timeout_s`.
            Unreachable: the server cannot be reached for a minute, or when `timeout_s` is over.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        give_up_at = time.monotonic() + PATIENCE_S
        while True:
            is_late = deadline is not None and time.monotonic() >= deadline
            try:
                self.refresh()
            except Unreachable:
                if is_late or time.monotonic() >= give_up_at:
                    raise
            else:
                if self.has_ended:
                    return self
                if is_late:
                    raise TimeoutError(f"{self!r} has not ended after {timeout_s:g} s")
                give_up_at = time.monotonic() + PATIENCE_S
            time.sleep(_POLL_S)

    def runs(self) -> Runs:
        """Its runs so far, in the order in which it lists them."""
        return Runs(self._transport, map(self._run, self._run_ids())).refresh()

    def stop(self) -> Self:
        """Start no further run of it, and stop those that have not ended."""
        return self._do("stop")

    def retry(self) -> Self:
        """Queue its failed and stopped runs again, and continue it."""
        return self._do("retry")

    def extend(self, **fields: Any) -> Self:
        """Give it more, and continue it.

        Args:
            fields: those of `POST /sweeps/{id}/extend` or `POST /studies/{id}/extend`.
        """
        return self._do("extend", fields)

    def delete(self) -> None:
        """Delete it after it has ended; its runs stay."""
        self._transport.request("DELETE", f"{self.PATH}/{self.id}")

    def _do(self, action: str, body: dict[str, Any] | None = None) -> Self:
        path = f"{self.PATH}/{self.id}/{action}"
        self._transport.request("POST", path, body=body, idempotency_key=new_ulid())
        return self.refresh()

    def _run_ids(self) -> list[str]:
        raise NotImplementedError

    def _run(self, run_id: str) -> Run:
        return Run(self._transport, {"id": run_id})


class Sweep(_Experiment):
    """A sweep: runs of many configurations, each with several seeds, of which racing leaves the best."""

    PATH = "sweeps"

    @property
    def configurations(self) -> list[dict[str, Any]]:
        """Its configurations: each with `settings`, `n`, `iqm`, `median`, `eliminated` and its `runs`."""
        if "configurations" not in self.data:
            self.refresh()
        return [*self.data["configurations"]]

    @property
    def best(self) -> dict[str, Any] | None:
        """The configuration with the highest interquartile mean of those that are left; None without any."""
        if "best" not in self.data:
            self.refresh()
        best: dict[str, Any] | None = self.data["best"]
        return best

    def _run_ids(self) -> list[str]:
        members = [run for row in self.refresh().configurations for run in row["runs"]]
        return [run["run"] for run in members if run["run"] is not None]


class Study(_Experiment):
    """A study: a figure or table of a paper at a scale, or one of a person's own."""

    PATH = "studies"

    def cells(self) -> list[dict[str, Any]]:
        """Its cells: each with its arm, environment, seed and `run`."""
        return list(self._transport.items(f"{self.PATH}/{self.id}/cells"))

    def export(self, file: str | PathLike[str]) -> Path:
        """Store it as a ZIP file with its figures, tables and scores, and return the path."""
        return self._transport.download(f"{self.PATH}/{self.id}/export", file)

    def _run_ids(self) -> list[str]:
        return [cell["run"] for cell in self.cells() if cell["run"] is not None]
