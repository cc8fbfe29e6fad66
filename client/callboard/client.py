"""A client of a server: start runs, sweeps and studies, find them, compare them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from callboard.comparing import Comparison
from callboard.experiments import Study, Sweep
from callboard.rows import items, mapping, number, run_id_of
from callboard.run import LIMITS, SETTINGS
from callboard.runs import Run, Runs
from callboard.spool import new_ulid
from callboard.transport import Transport, find_server

if TYPE_CHECKING:
    from typing import Self

_SEEDS_OF_A_RACE = 3
"""Seeds of a configuration before it is first compared with others."""
_SPACE = 'settings with their values, such as {"learning_rate": [0.001, 0.01]}'
_FIGURES = {
    ".json": "json",
    ".csv": "csv",
    ".py": "matplotlib",
    ".zip": "zip",
    ".txt": "caption",
    ".html": "html",
}
"""Formats of figures by the ending of their file."""


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
        body = fields | {"algorithm": algorithm, "environment": environment}
        body["seeds"] = [_seed(seed) for seed in items("seeds", seeds, "range(3)")]
        body |= {"config": mapping("config", config, SETTINGS), "stop": mapping("stop", stop, LIMITS)}
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
        params = {"spec": True} | fields | {"filter": query, "sort": sort}
        items = self.transport.items("runs", params, limit=limit)
        return Runs(self.transport, [Run(self.transport, item) for item in items])

    def sweep(
        self,
        algorithm: str,
        environment: str,
        space: Mapping[str, Any],
        *,
        name: str | None = None,
        config: Mapping[str, Any] | None = None,
        stop: Mapping[str, Any] | None = None,
        max_seeds: int | None = None,
        run: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Sweep:
        """Start a sweep: runs of many configurations, each with several seeds.

        Args:
            algorithm: an id from `GET /algorithms`, such as `paac`.
            environment: an id from `GET /environments`, such as `ALE/Pong-v5`.
            space: what varies: `{"config.learning_rate": [0.001, 0.003]}`, or as a range
                `{"config.beta": {"distribution": "log_uniform", "low": 1e-4, "high": 1e-2, "n": 5}}`. A name
                without a section is a setting of `config`.
            name: shown on pages; default: algorithm and environment.
            config: hyperparameters of all runs that differ from the defaults.
            stop: limits of every run, at least one, unless `space` has one.
            max_seeds: seeds of each configuration; with fewer than three, none is eliminated.
            run: other fields of `POST /runs` for all runs, such as `device` or `project`; with
                `{"origin": "external"}`, they are of a script that `callboard experiments run` starts.
            fields: others of `POST /sweeps`, such as `sampler`, `n_configurations`, `racing` or `budget`.

        Raises:
            Rejected: invalid fields, each named; nothing was started.
        """
        body = {"name": name or f"{algorithm} on {environment}"} | fields
        if max_seeds is not None:
            body["max_seeds"] = max_seeds
            if isinstance(max_seeds, int) and max_seeds < _SEEDS_OF_A_RACE:
                body.setdefault("racing", None)
        body["run"] = {
            **mapping("run", run, 'fields, such as {"device": "cpu"}'),
            "algorithm": algorithm,
            "environment": environment,
            "config": mapping("config", config, SETTINGS),
            "stop": mapping("stop", stop, LIMITS),
        }
        if body["run"].get("origin") == "external" and not body["run"]["stop"]:
            del body["run"]["stop"]  # scripts of one's own have none
        body["space"] = {
            path if "." in path else f"config.{path}": (
                {**values} if isinstance(values, Mapping) else {"values": items(path, values, "[0.1, 0.01]")}
            )
            for path, values in mapping("space", space, _SPACE).items()
        }
        return Sweep(self.transport, self._create("sweeps", body))

    def sweeps(self, id: str | None = None, *, limit: int | None = None) -> list[Sweep]:
        """Sweeps, the latest first, or the one with this id.

        Args:
            id: id of a sweep.
            limit: how many at most; default: all.
        """
        if id is not None:
            return [Sweep(self.transport, {"id": run_id_of(id, "sweep")}).refresh()]
        return [Sweep(self.transport, row) for row in self.transport.items("sweeps", limit=limit)]

    def study(self, item: str | None = None, **fields: Any) -> Study:
        """Start a study: a figure or table of a paper, or one of your own.

        Args:
            item: id of a figure or table, from `GET /papers`.
            fields: others of `POST /studies`, such as `scale`, `name`, or `study` in place of `item`.

        Raises:
            Rejected: invalid fields, each named; nothing was started.
        """
        body = fields if item is None else fields | {"item": item}
        return Study(self.transport, self._create("studies", body))

    def studies(self, id: str | None = None, *, limit: int | None = None) -> list[Study]:
        """Studies, the latest first, or the one with this id.

        Args:
            id: id of a study.
            limit: how many at most; default: all.
        """
        if id is not None:
            return [Study(self.transport, {"id": run_id_of(id, "study")}).refresh()]
        return [Study(self.transport, row) for row in self.transport.items("studies", limit=limit)]

    def compare(self, runs: Iterable[Run | str], **fields: Any) -> Comparison:
        """Compare groups of runs that differ in their seed alone: see `Runs.compare`.

        Args:
            runs: runs or their ids.
            fields: arguments of `Runs.compare`.
        """
        return self._chosen(runs).compare(**fields)

    def figure(
        self,
        kind: str,
        runs: Iterable[Run | str],
        file: str | PathLike[str] | None = None,
        **fields: Any,
    ) -> Any:
        """Draw a figure of runs as the pages do.

        Args:
            kind: `seed_curve`, with a line for each group of runs that differ in their seed alone;
                `learning_curve`, `curve` (with `metric`), `scatter` (`x`) or `diagnostic` (`panel`).
            runs: runs or their ids.
            file: its ending is the format: `.json` for Plotly, `.csv` for what is drawn, `.py` for a script
                that redraws it with matplotlib from the CSV beside it, `.zip` for both, `.txt` for the
                caption, `.html` for a page.
            fields: parameters of `GET /figures/KIND`, such as `metric`, `x`, `interval` or `seeds`.

        Returns:
            The path of the file; without one `data` and `layout` for Plotly, as
            `plotly.graph_objects.Figure(figure["data"], figure["layout"])` takes them.

        Raises:
            ValueError: the ending is that of no format.
            Rejected: there is no such figure, or a parameter is invalid.
        """
        if not kind.isidentifier():
            raise ValueError(f"kind: must be the name of a figure, such as seed_curve: got {kind!r:.200}")
        params = fields | {"run": [run.id for run in self._chosen(runs)]}
        path = f"figures/{kind}"
        if file is None:
            return self.transport.request("GET", path, params=params)
        ending = Path(fspath(file)).suffix.lower()
        if ending not in _FIGURES:
            raise ValueError(f"file: must end in {', '.join(_FIGURES)}: got {fspath(file)!r:.200}")
        return self.transport.download(path, file, params | {"format": _FIGURES[ending]})

    def hosts(self) -> list[dict[str, Any]]:
        """The hosts whose workers train, as the REST API describes them."""
        return list(self.transport.items("hosts"))

    def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        params: Mapping[str, Any] | None = None,
    ) -> Any:
        """Send any request of the REST API, and return the JSON of its answer.

        Args:
            method: such as `GET`.
            path: as the reference has it: `/runs/{id}/queue`.
            body: sent as JSON.
            params: parameters of the query; None values are left out.

        Raises:
            Rejected: the server refused the request.
            Unreachable: the server cannot be reached.
        """
        key = new_ulid() if method.upper() == "POST" else None
        return self.transport.request(
            method.upper(), _below_api(path), body=body, params=params, idempotency_key=key
        )

    def download(self, path: str, file: str | PathLike[str], **params: Any) -> Path:
        """Store the answer to any GET request in a file, and return its path.

        Args:
            path: as the reference has it: `/checkpoints/{id}/file`.
            file: where to store it.
            params: parameters of the query.

        Raises:
            OSError: the file cannot be written.
            Rejected: the server refused the request.
            Unreachable: the server cannot be reached, or the answer broke off.
        """
        return self.transport.download(_below_api(path), file, params)

    def _chosen(self, runs: Iterable[Run | str]) -> Runs:
        chosen = [
            run if isinstance(run, Run) else Run(self.transport, {"id": run_id_of(run)})
            for run in items("runs", runs, "[run, other]")
        ]
        return Runs(self.transport, chosen)

    def _create(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self.transport.request("POST", path, body=body, idempotency_key=new_ulid())
        return answer


def _below_api(path: str) -> str:
    return path.lstrip("/").removeprefix("api/v1/")


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
