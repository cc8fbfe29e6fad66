"""The commands of the client alone that act on a server: `runs`, `hosts` and `token`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from callboard.client import Client, connect
from callboard.display import (
    HOST_COLUMNS,
    TOKEN_COLUMNS,
    cells_of,
    host_cells,
    host_problems,
    lines_of,
    log_text,
    short,
    token_cells,
)
from callboard.errors import Rejected
from callboard.runs import Run, Runs

_COLUMNS = ("id", "name", "state", "agent steps", "score", "algorithm", "environment", "seed")
_FOLLOW_S = 1.0
_MAX_COMPARED = 100


def add_runs(command: argparse.ArgumentParser) -> None:
    """Add the actions of `runs`."""
    actions = command.add_subparsers(dest="action", required=True)

    def action(
        name: str, function: Callable[[argparse.Namespace], int], help: str
    ) -> argparse.ArgumentParser:
        added = actions.add_parser(name, help=help)
        added.set_defaults(function=function)
        return added

    listed = action("list", _list, "list runs, the latest first by default")
    listed.add_argument("--filter", help="for example: algorithm:paac score>10 tag:new")
    listed.add_argument("--sort", default="-created_at", help="field to sort by; - before it: descending")
    listed.add_argument("--limit", type=_positive, default=50, help="maximum number of runs")
    shown = action("show", _show, "show a run")
    logged = action("log", _log, "print the log of a run")
    logged.add_argument("--search", help="only lines that contain this text")
    logged.add_argument("--last", type=_positive, help="only so many of the last lines, at most 1,000")
    logged.add_argument("--follow", action="store_true", help="print further lines until the run has ended")
    stopped = action("stop", _stop, "stop runs; each saves a last checkpoint")
    stopped.add_argument("--kill", action="store_true", help="kill them at once, without a checkpoint")
    resumed = action("resume", _resume, "resume ended runs from their latest checkpoints")
    resumed.add_argument("--agent-steps", type=_whole, help="new limit")
    forked = action("fork", _fork, "start another run from a checkpoint of a run")
    forked.add_argument("--checkpoint", help="id of the checkpoint; default: the latest")
    forked.add_argument("--set", action="append", default=[], help="NAME=VALUE of the config; repeatable")
    forked.add_argument("--agent-steps", type=_whole, help="limit; default: the run's limits")
    forked.add_argument("--seed", type=_whole, help="seed; default: the run's")
    forked.add_argument("--name", help="name of the fork")
    deleted = action(
        "delete", _delete, "delete runs that do not train; the page can restore them for an hour"
    )
    deleted.add_argument("--permanently", action="store_true", help="so that nothing can be restored")
    archived = action("archive", _archive, "hide ended runs from lists")
    archived.add_argument("--undo", action="store_true", help="show them again")
    tagged = action("tag", _tag, "add tags to runs, or remove them")
    tagged.add_argument("--add", action="append", default=[], help="tag to add; repeatable")
    tagged.add_argument("--remove", action="append", default=[], help="tag to remove; repeatable")
    compared = action("compare", _compare, "compare groups of runs that differ in their seed alone")
    compared.add_argument("run", nargs="*", help="ids of runs; or choose them by --filter")
    compared.add_argument("--filter", help="compare the runs that match")
    compared.add_argument("--score", choices=("training", "evaluation"), default="training")
    exported = action("export", _export, "store every point of runs in a file")
    exported.add_argument("--output", required=True, help="file: .csv, .parquet, .npz, or .zip (TensorBoard)")
    exported.add_argument("--metric", action="append", default=[], help="only this metric; repeatable")
    for parser in (shown, logged, forked):
        parser.add_argument("run", help="id of the run")
    for parser in (stopped, resumed, deleted, archived, tagged, exported):
        parser.add_argument("run", nargs="+", help="ids of runs")
    for parser in (listed, shown, logged, stopped, resumed, forked, archived, tagged, compared):
        parser.add_argument("--json", action="store_true", help="print JSON")


def add_hosts(command: argparse.ArgumentParser) -> None:
    """Add the options of `hosts`."""
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(function=_hosts)


def add_token(command: argparse.ArgumentParser) -> None:
    """Add the actions of `token`."""
    actions = command.add_subparsers(dest="action", required=True)
    listed = actions.add_parser("list", help="list the tokens of your token's user")
    listed.add_argument("--everyone", action="store_true", help="of all users; needs the role admin")
    listed.add_argument("--json", action="store_true", help="print JSON")
    listed.set_defaults(function=_tokens)
    revoked = actions.add_parser("revoke", help="revoke tokens, and those that were created with them")
    revoked.add_argument("token", nargs="+", help="ids of tokens")
    revoked.set_defaults(function=_revoke)


def _list(given: argparse.Namespace) -> int:
    with connect() as client:
        runs = client.runs(given.filter, sort=given.sort, limit=given.limit)
    rows = [[run.id, short(run.name), *cells_of(run.data)] for run in runs]
    return _print_rows([run.data for run in runs], _COLUMNS, rows, as_json=given.json)


def _show(given: argparse.Namespace) -> int:
    with connect() as client:
        run = client.run(given.run)
    if given.json:
        _print(json.dumps(run.data))
        return 0
    for name, text in lines_of(run.data):
        _print(f"{printable(name):28} {printable(text)}")
    return 0


def _log(given: argparse.Namespace) -> int:
    with connect() as client:
        run = client.run(given.run)
        latest = _print_lines(run.log(given.search, last=given.last), 0, as_json=given.json)
        while given.follow:
            has_ended = run.refresh().has_ended
            params = {"search": given.search, "after": latest}
            lines = client.transport.items(f"runs/{run.id}/log", params)
            latest = _print_lines(lines, latest, as_json=given.json)
            if has_ended:
                break
            time.sleep(_FOLLOW_S)
    return 0


def _print_lines(lines: Iterable[dict[str, Any]], latest: int, *, as_json: bool) -> int:
    """Print lines of a log; return the id of the last one, or `latest` if there is none."""
    for line in lines:
        latest = line["id"]
        _print(json.dumps(line) if as_json else printable(log_text(line)))
    return latest


def _stop(given: argparse.Namespace) -> int:
    return _act(given, lambda run: run.stop(kill=given.kill))


def _resume(given: argparse.Namespace) -> int:
    stop = None if given.agent_steps is None else {"agent_steps": given.agent_steps}
    return _act(given, lambda run: run.resume(stop=stop))


def _archive(given: argparse.Namespace) -> int:
    return _act(given, lambda run: run.archive(not given.undo))


def _delete(given: argparse.Namespace) -> int:
    given.json = False

    def delete(run: Run) -> None:
        run.delete(restorable=not given.permanently)
        run.data = {**run.data, "state": "deleted", "state_reason": None}

    return _act(given, delete)


def _fork(given: argparse.Namespace) -> int:
    config = dict(_assignment(text) for text in given.set)
    stop = None if given.agent_steps is None else {"agent_steps": given.agent_steps}
    with connect() as client:
        run = client.run(given.run).fork(
            checkpoint=given.checkpoint, config=config, stop=stop, seed=given.seed, name=given.name
        )
    _print(json.dumps(run.data) if given.json else run.id)
    return 0


def _tag(given: argparse.Namespace) -> int:
    if not given.add and not given.remove:
        raise ValueError("--add: name a tag to add, or one to remove with --remove")
    with connect() as client:
        runs = _runs(client, given.run)
        if given.add:
            runs.tag(*given.add)
        if given.remove:
            runs.untag(*given.remove)
    if given.json:
        _print(json.dumps([run.data for run in runs]))
        return 0
    for run in runs:
        _print(f"{run.id}  {printable(', '.join(run.tags))}")
    return 0


def _compare(given: argparse.Namespace) -> int:
    if bool(given.run) == bool(given.filter):
        raise ValueError("run: name the runs to compare, or choose them by --filter")
    with connect() as client:
        # One more than can be compared: the server's message states the limit.
        runs = (
            client.runs(given.filter, limit=_MAX_COMPARED + 1) if given.filter else _runs(client, given.run)
        )
        if not runs:
            raise ValueError(f"filter: no run matches {given.filter!r:.200}")
        comparison = runs.compare(score=given.score)
    _print(json.dumps(comparison.data) if given.json else str(comparison))
    return 0


def _export(given: argparse.Namespace) -> int:
    with connect() as client:
        _print(str(_runs(client, given.run).export(given.output, *given.metric)))
    return 0


def _hosts(given: argparse.Namespace) -> int:
    with connect() as client:
        hosts = client.hosts()
    _print_rows(hosts, HOST_COLUMNS, map(host_cells, hosts), as_json=given.json)
    for problem in () if given.json else host_problems(hosts):
        _print(printable(problem))
    return 0


def _tokens(given: argparse.Namespace) -> int:
    with connect() as client:
        tokens = list(client.transport.items("tokens", {"everyone": given.everyone}))
    return _print_rows(tokens, TOKEN_COLUMNS, map(token_cells, tokens), as_json=given.json)


def _revoke(given: argparse.Namespace) -> int:
    with connect() as client:
        for token in given.token:
            if not token.isalnum():
                raise ValueError(
                    f"token: must be the id of a token, as `token list` shows it: got {token!r:.200}"
                )
            client.request("DELETE", f"tokens/{token}")
            _print(token)
    return 0


def _act(given: argparse.Namespace, act: Callable[[Run], Any]) -> int:
    """Act on every run, also after one was refused, and print them.

    Raises:
        Rejected: one was refused.
    """
    refusals = []
    with connect() as client:
        runs = [client.run(run_id) for run_id in given.run]
        for run in runs:
            try:
                act(run)
            except Rejected as error:
                refusals.append(error)
    if given.json:
        _print(json.dumps([run.data for run in runs] if len(runs) > 1 else runs[0].data))
    else:
        for run in runs:
            _print(f"{run.id}  {run.state}: {printable(str(run.data.get('state_reason') or ''))}")
    if refusals:
        raise refusals[0]
    return 0


def _runs(client: Client, ids: Sequence[str]) -> Runs:
    return Runs(client.transport, map(client.run, ids))


def _assignment(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ValueError(f"--set: must be NAME=VALUE: got {text!r:.200}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _positive(text: str) -> int:
    number = _whole(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be a whole number above 0")
    return number


def _whole(text: str) -> int:
    try:
        number = float(text.replace("_", ""))
    except ValueError:
        number = -1.0
    if number < 0 or not number.is_integer() or number > 2**63:
        raise argparse.ArgumentTypeError(f"must be a whole number, such as 1000000 or 1e6: got {text!r:.80}")
    return int(text) if text.isdecimal() else int(number)


def printable(text: str) -> str:
    """Text of other users with its control characters escaped: terminals obey them."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _print_rows(
    items: Sequence[dict[str, Any]],
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    as_json: bool,
) -> int:
    """Print items as JSON, or a table of their rows."""
    if as_json:
        _print(json.dumps(items))
        return 0
    table = [columns, *rows]
    widths = [max(map(len, column)) for column in zip(*table)]
    for row in table:
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths))
        _print("  ".join(cells).rstrip())
    return 0


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
