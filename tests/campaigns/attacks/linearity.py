"""Processor time is linear in what is sent: of every pattern, of the parsers, and of requests."""

import gc
import importlib
import json
import pkgutil
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import product
from math import ceil
from pathlib import Path
from statistics import median
from time import process_time
from types import ModuleType
from typing import Any

import httpx

import backend
from backend.access.audit.service import _describe_body
from backend.http.json_bounds import excess_of
from backend.platform.errors import Problem
from backend.platform.text import unstorable_paths
from backend.runs.runs import filters
from tests.campaigns.attacks.target import Report, Target
from tests.support.rows import CARTPOLE, external_request

LENGTH = 2**21
"""Of the longest texts, also for patterns that meet shorter ones only."""
BOUNDS = {"filters.": 2_000}
"""By a part of their names, largest lengths of what no request can give longer texts to."""
MAX_RATIO = 2.5
"""Of the processor time of a text to that of half of it, medians of `N`."""
EARLY_SHARE = 32
"""Texts shorter by this factor are tried before: of what is not linear, the longest would take hours."""
EARLY_RATIO = 3.0
"""Of the processor times of those; 4 is the square."""
LEAST_S = 0.02
"""A text is parsed again and again for at least this time."""
MAX_TIMES = 500
"""If that takes less than `LEAST_S`, the text is refused at its beginning: times are not compared."""
N = 5
AT_ONCE = 4
"""Requests whose processor time is measured together: the system counts it in hundredths of a second."""
UNITS = ('"', '\\"', "\\", "'", "[", "{", "(", "[]", '"a"', '"":', "a", "0", "-", "=", "/", ".", ":", "%",
         " ", "\t", "a=", "a.", "not ", '"a" ', "\u00e9", "1e")  # fmt: skip
"""Texts are one of them again and again, with one of them before and one behind."""
ENDS = ("", '"')
SEARCHES = ("search", "sub", "finditer", "findall", "split")

Parser = Callable[[Any], object]

OF_BYTES: set[str] = set()
"""The parsers that take bytes."""


def _modules() -> Iterator[ModuleType]:
    for module in pkgutil.walk_packages(backend.__path__, "backend."):
        yield importlib.import_module(module.name)


def patterns() -> dict[str, Parser]:
    """What modules do with each of their patterns."""
    uses_of_all: dict[str, Parser] = {}
    for module in _modules():
        source = Path(module.__file__ or "").read_text()
        for name, pattern in vars(module).items():
            if not isinstance(pattern, re.Pattern):
                continue
            uses: dict[str, Parser] = {"match": pattern.match, "fullmatch": pattern.fullmatch}
            if any(f"{name}.{search}" in source for search in SEARCHES):
                uses["search"] = partial(_search_all, pattern)
            named = {f"{module.__name__}.{name}.{use}": parse for use, parse in uses.items()}
            uses_of_all |= named
            OF_BYTES.update(named if isinstance(pattern.pattern, bytes) else ())
    return uses_of_all


def _search_all(pattern: re.Pattern[Any], text: Any) -> None:
    for _ in pattern.finditer(text):
        pass


PARSERS: dict[str, Parser] = {
    "json_bounds.excess_of": lambda text: excess_of(text.encode(), 10**9),
    "text.unstorable_paths": lambda text: unstorable_paths({"a": [text], text: 1}),
    "audit._describe_body": lambda text: _describe_body(text.encode()),
    "filters.parse": filters.parse,
}


def _time_s(parse: Parser, text: Any, n_times: int = 1) -> float:
    gc.disable()  # its turns depend on what the texts before have left
    began = process_time()
    for _ in range(n_times):
        with suppress(Problem, ValueError, RecursionError):  # refused
            parse(text)
    taken = process_time() - began
    gc.enable()
    return taken


def ratio_of(parse: Parser, half: Any, text: Any, n: int) -> float:
    """The processor time of a text to that of its half; 0 if both take next to none."""
    n_times = min(MAX_TIMES, ceil(LEAST_S / max(_time_s(parse, half), 1e-6)))
    if _time_s(parse, half, n_times) < LEAST_S / 2:
        return 0.0
    halves, wholes = zip(
        *((_time_s(parse, half, n_times), _time_s(parse, text, n_times)) for _ in range(n)), strict=True
    )
    return float(median(wholes) / median(halves))


def linear_patterns_and_parsers(target: Target, report: Report) -> None:
    """Every pattern of the backend, and the parsers of requests, on repeated texts of 1 and 2 MiB, or half of
    the bound and the bound."""
    parsers = patterns() | PARSERS
    worst, n_compared = (0.0, ""), 0
    for unit, start, end in product(UNITS, ENDS, ENDS):
        for name, parse in parsers.items():
            longest = next((bound for part, bound in BOUNDS.items() if part in name), LENGTH)
            shortest = longest // EARLY_SHARE if longest == LENGTH else longest
            for length, most in ((shortest, EARLY_RATIO), (longest, MAX_RATIO)):
                texts = [start + unit * (n // len(unit)) + end for n in (length // 2, length)]
                half, text = [text.encode() for text in texts] if name in OF_BYTES else texts
                ratio = ratio_of(parse, half, text, N if length == longest else 1)
                n_compared += ratio > 0
                if ratio > most:
                    report.problems.append(f"{name} of {start + unit!r}...{end!r}: {ratio:.1f} at {length:,}")
                    break
            worst = max(worst, (ratio, name))
    report.details = f"{len(parsers)} parsers, {n_compared} ratios; the largest {worst[0]:.2f}, of {worst[1]}"


def linear_requests(target: Target, report: Report) -> None:
    """Processor time of the web process for bodies of 2 MB and of 1 MB."""
    web = target.process("web")
    run = external_request()

    def bodies(n: int) -> dict[str, tuple[str, str, bytes]]:
        text = "x" * n
        return {
            "quotes": ("viewer", "/runs/estimate", b'"' + b'\\"' * (n // 2)),
            "quotes and a key": ("viewer", "/runs/estimate", b'{"' + b'\\"' * (n // 2) + b'":1}'),
            "notes": ("operator", "/runs", json.dumps(CARTPOLE | {"notes": text}).encode()),
            "config": ("operator", "/runs", json.dumps(run | {"config": {"a": text}}).encode()),
            "lists": ("operator", "/runs", b"[" * 10 + b"[]," * (n // 3)),
            "bytes": ("external", "/runs", bytes(n)),
        }

    def times_s(name: str, n: int) -> float:
        who, path, body = bodies(n)[name]
        headers = {"Authorization": f"Bearer {target.tokens[who]}", "Content-Type": "application/json"}
        taken = []
        for _ in range(N):
            began = web.cpu_times()
            for _ in range(AT_ONCE):
                answer = httpx.post(f"{target.url}/api/v1{path}", content=body, headers=headers, timeout=60)
                report.answers[str(answer.status_code)] += 1
            taken.append(sum(web.cpu_times()[:2]) - sum(began[:2]))
        return median(taken)

    ratios = {}
    for name in bodies(1):
        half_s, whole_s = times_s(name, 10**6), times_s(name, 2 * 10**6)
        if half_s >= AT_ONCE * LEAST_S:
            ratios[name] = whole_s / half_s
        if ratios.get(name, 0) > MAX_RATIO:
            report.problems.append(f"{name}: {whole_s:.2f} s of 2 MB, {half_s:.2f} s of 1 MB")
    report.details = f"ratios {', '.join(f'{name} {ratio:.1f}' for name, ratio in ratios.items()) or 'none'}"


LINEARITY: dict[str, Callable[[Target, Report], None]] = {
    attack.__name__: attack for attack in (linear_patterns_and_parsers, linear_requests)
}
