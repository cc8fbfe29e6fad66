"""A run of a server: its fields, what belongs to it, and how it is changed."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callboard import display
from callboard.rows import mapping, number
from callboard.spool import new_ulid
from callboard.transport import Transport

if TYPE_CHECKING:
    from typing import Self

ENDED = frozenset({"finished", "stopped", "failed"})
"""States in which a run stays, unless it is resumed."""

SETTINGS = 'settings, such as {"gamma": 0.9}'
LIMITS = 'limits, such as {"agent_steps": 10_000_000}'
"""Examples, for messages."""

FORMATS = {".csv": "csv", ".parquet": "parquet", ".npz": "npz", ".zip": "tensorboard"}
"""Formats of exported points by the ending of their file."""


def export_format(file: str | PathLike[str]) -> str:
    """The format of an export by the ending of its file.

    Raises:
        ValueError: it is the ending of no format.
    """
    ending = Path(fspath(file)).suffix.lower()
    if ending not in FORMATS:
        raise ValueError(f"file: must end in {', '.join(FORMATS)}: got {fspath(file)!r:.200}")
    return FORMATS[ending]


class RunRecord:
    """A run as a server has it. Its fields are those of the last answer: `refresh` reads them again."""

    def __init__(self, transport: Transport, data: dict[str, Any]) -> None:
        self._transport = transport
        self.data = data
        """The run as the REST API describes it."""

    def __repr__(self) -> str:
        """Id, name and state."""
        return f"<Run {self.id} {self.name!r} {self.state}>"

    def _repr_html_(self) -> str:
        """A table with a link to its page, in a notebook."""
        return display.table([(self.url, self.data)])

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
        """Its state, as of the last answer."""
        return str(self.data["state"])

    @property
    def seed(self) -> int:
        """Its seed."""
        return int(self.data["seed"])

    @property
    def algorithm(self) -> str:
        """Id of its algorithm; of an external run the name that its script has chosen."""
        return str(self.data["algorithm"])

    @property
    def environment(self) -> str:
        """Id of its environment; of an external run the name that its script has chosen."""
        return str(self.data["environment"])

    @property
    def config(self) -> dict[str, Any]:
        """Settings of its algorithm, defaults included; of an external run those that its script has sent."""
        return dict(self.data["spec"].get("config") or {})

    @property
    def environment_config(self) -> dict[str, Any]:
        """Settings of its environment, defaults included; none of an external run."""
        return dict(self.data["spec"].get("environment_config") or {})

    @property
    def tags(self) -> list[str]:
        """Its tags, as of the last answer."""
        return [*self.data["tags"]]

    @property
    def group(self) -> str | None:
        """The name of its group, as of the last answer."""
        group = self.data["group"]
        return None if group is None else str(group)

    @property
    def score(self) -> float | None:
        """Mean true return of the last 100 training episodes, as of the last answer."""
        score = self.data["score"]
        return None if score is None else float(score)

    @property
    def has_ended(self) -> bool:
        """Whether it has finished, failed or been stopped."""
        return self.state in ENDED

    @property
    def url(self) -> str:
        """Address of its page."""
        return f"{self._transport.server.url}/runs/{self.id}"

    def refresh(self) -> Self:
        """Read its fields again, and return itself."""
        self.data = self._transport.request("GET", f"runs/{self.id}")
        return self

    def step_notes(self) -> list[dict[str, Any]]:
        """The notes at its steps, in the order of training, as the REST API describes them."""
        notes: list[dict[str, Any]] = self._transport.request("GET", f"runs/{self.id}/step-notes")["items"]
        return notes

    def add_step_note(self, text: str, agent_steps: float) -> dict[str, Any]:
        """Note something at a step, which the learning curve on its page marks; return the note.

        Args:
            text: the note, as plain text.
            agent_steps: what it is about, at most the latest step; iterations of a run that counts them.

        Raises:
            ValueError: the steps are not a whole number.
            Rejected: the run has not reached the step, has 200 notes already, or the text is empty.
            Unreachable: the server cannot be reached. Whether the note was added is unknown.
        """
        steps = number("agent_steps", agent_steps)
        if not steps.is_integer():
            raise ValueError(f"agent_steps: must be a whole number: got {agent_steps!r}")
        body = {"agent_steps": int(steps), "text": text}
        note: dict[str, Any] = self._transport.request(
            "POST", f"runs/{self.id}/step-notes", body=body, idempotency_key=new_ulid()
        )
        return note

    def metrics(self) -> list[str]:
        """The names of its metrics so far, such as `rollout/episode_return`."""
        items = self._transport.request("GET", f"runs/{self.id}/series")["items"]
        return list(dict.fromkeys(str(item["metric"]) for item in items))

    def checkpoints(self) -> list[dict[str, Any]]:
        """Its checkpoints whose files are stored, the latest first, as the REST API describes them.

        `Client.download(f"checkpoints/{checkpoint['id']}/file", "agent.pt")` stores the file of one.
        """
        return list(self._transport.items(f"runs/{self.id}/checkpoints"))

    def log(self, search: str | None = None, *, last: int | None = None) -> list[dict[str, Any]]:
        """Lines of its log, the oldest first: each with `time`, `level`, `message` and `agent_steps`.

        Args:
            search: only lines that contain this text, in small or capital letters.
            last: only so many of the last lines, at most 1,000; default: all.
        """
        path = f"runs/{self.id}/log"
        if last is None:
            return list(self._transport.items(path, {"search": search}, page=1_000))
        params = {"search": search, "tail": True, "limit": last}
        lines: list[dict[str, Any]] = self._transport.request("GET", path, params=params)["items"]
        return lines

    def export(self, file: str | PathLike[str], *metrics: str, sources: bool = True) -> Path:
        """Store every point in a file, and return its path.

        Args:
            file: its ending is the format: `.csv`, `.parquet`, `.npz`, or `.zip` for TensorBoard's files.
            metrics: only these; default: all.
            sources: include the points of single actors, not only of the run as a whole.

        Raises:
            ValueError: the ending is that of no format.
            OSError: the file cannot be written.
        """
        params = {"metric": metrics, "sources": sources, "format": export_format(file)}
        return self._transport.download(f"runs/{self.id}/export", file, params)

    def stop(self, *, kill: bool = False) -> None:
        """Stop it: after a last checkpoint, if Callboard trains it.

        Args:
            kill: end its process at once, without a checkpoint.
        """
        self._do("kill" if kill else "stop")

    def checkpoint(self) -> None:
        """Have it save a checkpoint now, and go on.

        Raises:
            Rejected: it is not running, or its script saves its files itself.
        """
        self._do("checkpoint")

    def resume(self, *, stop: Mapping[str, Any] | None = None, annealing: str | None = None) -> Self:
        """Continue it from its latest checkpoint after it has ended, and return itself.

        Args:
            stop: new limits, such as `{"agent_steps": 20_000_000}`; default: the old ones.
            annealing: of a linear learning rate, whether new limits `keep` or `extend` its schedule.

        Raises:
            Rejected: it has not ended, or has reached its limits.
        """
        limits = None if stop is None else mapping("stop", stop, LIMITS)
        body = {"stop": limits, "annealing": annealing}
        self._do("resume", {name: value for name, value in body.items() if value is not None})
        return self

    def fork(
        self,
        *,
        checkpoint: str | None = None,
        config: Mapping[str, Any] | None = None,
        stop: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Self:
        """Start another run from one of its checkpoints, and return that.

        Args:
            checkpoint: id of the checkpoint; default: the latest.
            config: settings of the algorithm that differ from this run's.
            stop: limits; default: this run's.
            fields: others of `POST /runs/{id}/fork`, such as `seed`, `name`, `tags` or `environment_config`.

        Raises:
            Rejected: it has no checkpoint, or a field is invalid.
        """
        body = fields | {
            "checkpoint": checkpoint,
            "config": None if config is None else mapping("config", config, SETTINGS),
            "stop": None if stop is None else mapping("stop", stop, LIMITS),
        }
        body = {name: value for name, value in body.items() if value is not None}
        answer = self._transport.request(
            "POST", f"runs/{self.id}/fork", body=body, idempotency_key=new_ulid()
        )
        return type(self)(self._transport, answer)

    def update(self, **fields: Any) -> Self:
        """Change what describes it, and return itself.

        Args:
            fields: those of `PATCH /runs/{id}`: `name`, `notes`, `tags`, `group`, `project` or `priority`.
        """
        self.data = self._transport.request("PATCH", f"runs/{self.id}", body=fields)
        return self

    def archive(self, archived: bool = True) -> Self:
        """Hide it from lists, or show it again, and return itself.

        Args:
            archived: whether lists hide it.
        """
        self._do("archive", {"archived": archived})
        return self

    def delete(self, *, restorable: bool = False) -> None:
        """Delete it with everything that belongs to it. It must not train.

        Args:
            restorable: it can be restored for an hour, on the page or by `POST /runs/{id}/restore`.
        """
        self._transport.request("DELETE", f"runs/{self.id}", params={"restorable": restorable})

    def _do(self, action: str, body: dict[str, Any] | None = None) -> None:
        answer = self._transport.request(
            "POST", f"runs/{self.id}/{action}", body=body, idempotency_key=new_ulid()
        )
        self.data = answer or self.data
