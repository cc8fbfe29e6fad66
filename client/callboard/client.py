"""A client of a server: start runs, find them, read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from callboard.rows import items, number, run_id_of
from callboard.runs import Run, Runs
from callboard.spool import new_ulid
from callboard.transport import Transport, find_server

if TYPE_CHECKING:
    from typing import Self

_PAGE = 200


class Client:
    """A client of one server. Close it, or use it as a context manager."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        """Sends the requests: for programs that need an address which no method reads."""

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        self.close()

    @property
    def url(self) -> str:
        """Address of the server."""
        return self.transport.server.url

    def close(self) -> None:
        """Close the connections."""
        self.transport.close()

    def start(
        self,
        algorithm: str,
        environment: str,
        *,
        seeds: Iterable[int] = (0,),
        config: Mapping[str, Any] | None = None,
        stop: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Runs:
        """Start a run for each seed. Callboard trains them.

        Args:
            algorithm: an id from `GET /algorithms`, such as `paac`.
            environment: an id from `GET /environments`, such as `ALE/Pong-v5`.
            seeds: seeds, as `range(3)`.
            config: hyperparameters that differ from the defaults.
            stop: limits, at least one: `agent_steps`, `wall_time_s` or `score`.
            fields: others of `POST /runs`, such as `name`, `group`, `tags`, `device`, `environment_config`.

        Raises:
            ValueError: an argument of another type; nothing was started.
            Rejected: invalid fields, each named; nothing was started.
            Unreachable: the server cannot be reached. Runs may have been started if the connection broke off.
        """
        if "seed" in fields:
            raise ValueError(f"seed: give seeds, such as seeds=[{fields['seed']!r}]")
        if stop is None:
            raise ValueError('stop: set at least one limit, such as stop={"agent_steps": 10_000_000}')
        if not isinstance(stop, Mapping):
            raise ValueError(f'stop: must be limits, such as {{"agent_steps": 10_000_000}}: got {stop!r}')
        if config is not None and not isinstance(config, Mapping):
            raise ValueError(f'config: must be settings, such as {{"gamma": 0.9}}: got {config!r}')
        body = fields | {"algorithm": algorithm, "environment": environment}
        body["seeds"] = [_seed(seed) for seed in items("seeds", seeds, "range(3)")]
        body |= {"config": dict(config or {}), "stop": dict(stop)}
        answer = self.transport.request("POST", "runs", body=body, idempotency_key=new_ulid())
        return Runs(self.transport, [Run(self.transport, item) for item in answer["items"]])

    def run(self, id: str) -> Run:
        """A run by its id.

        Raises:
            ValueError: this is not the id of a run.
            Rejected: there is no such run.
        """
        return Run(self.transport, self.transport.request("GET", f"runs/{run_id_of(id)}"))

    def runs(
        self, query: str | None = None, *, sort: str = "-created_at", limit: int | None = None, **fields: Any
    ) -> Runs:
        """Runs that match, the latest first.

        Args:
            query: a filter as on the Runs page: `algorithm:paac environment:Pong score>10 tag:a`.
            sort: a field; with the prefix `-` in descending order.
            limit: how many at most; default: all.
            fields: other parameters of `GET /runs`, such as `group`, `state` or `archived`.

        Raises:
            Rejected: the query cannot be understood.
        """
        runs: list[Run] = []
        params = {"spec": True} | fields | {"filter": query, "sort": sort, "cursor": None}
        while limit is None or len(runs) < limit:
            params["limit"] = _PAGE if limit is None else min(_PAGE, limit - len(runs))
            page = self.transport.request("GET", "runs", params=params)
            runs += [Run(self.transport, item) for item in page["items"]]
            params["cursor"] = page["next_cursor"]
            if params["cursor"] is None:
                break
        return Runs(self.transport, runs)


def _seed(value: Any) -> int:
    """A seed, whose range the server checks."""
    seed = number("seeds", value)
    if not seed.is_integer():
        raise ValueError(f"seeds: must be whole numbers: got {value!r}")
    return int(seed)


def connect(url: str | None = None, token: str | None = None) -> Client:
    """A client of a server. Nothing is sent yet.

    Args:
        url: address of the server; default: `CALLBOARD_URL`, else this machine's installation.
        token: an API token; default: `CALLBOARD_TOKEN`, else that of this machine's installation.

    Raises:
        NotConfigured: no server, or no token for it.
    """
    return Client(Transport(find_server(url, token)))
