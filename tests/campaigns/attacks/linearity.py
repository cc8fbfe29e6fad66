"""Processor time is linear in what is sent: of every pattern, of the parsers, and of requests."""

import importlib
import json
import pkgutil
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise, product
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
from tests.campaigns.attacks.target import Report, Target
from tests.support.rows import CARTPOLE, external_request

LENGTHS = [2**n for n in range(14, 22)]
MAX_RATIO = 2.5
"""Of the processor time of a text to that of half of it."""
EARLY_RATIO = 3.5
"""The same of shorter texts, above which a longer one is not tried: 4 is the square."""
LEAST_S = 0.02
"""Shorter times are not compared."""
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
}


def _time_s(parse: Parser, text: Any) -> float:
    began = process_time()
    with suppress(Problem, ValueError, RecursionError):  # refused
        parse(text)
    return process_time() - began


def worst_ratio(parse: Parser, texts: Sequence[str] | Sequence[bytes]) -> tuple[float, int]:
    """The ratio of the times of the longest text and of the one before, and its length; of a shorter text if
    that is not linear: the longest would take hours then."""
    worst, times_s = 0.0, [_time_s(parse, texts[0])]
    for half, text in pairwise(texts):
        times_s.append(_time_s(parse, text))
        if times_s[-2] < LEAST_S:
            continue
        ratio = times_s[-1] / times_s[-2]
        if ratio > MAX_RATIO:  # or was the machine busy?
            ratio = median(_time_s(parse, text) for _ in range(N)) / median(
                _time_s(parse, half) for _ in range(N)
            )
        if ratio > EARLY_RATIO:
            return ratio, len(text)
        worst = ratio if text is texts[-1] else worst
    return worst, len(texts[-1])


def linear_patterns_and_parsers(target: Target, report: Report) -> None:
    """Every pattern of the backend, and the parsers of requests, on repeated texts of up to 2 MiB."""
    parsers = patterns() | PARSERS
    worst = (0.0, "")
    for unit, start, end in product(UNITS, ENDS, ENDS):
        texts = [start + unit * (n // len(unit)) + end for n in LENGTHS]
        encoded = [text.encode() for text in texts]
        for name, parse in parsers.items():
            ratio, n = worst_ratio(parse, encoded if name in OF_BYTES else texts)
            worst = max(worst, (ratio, name))
            if ratio > MAX_RATIO:
                report.problems.append(f"{name} of {start + unit!r}...{end!r}: {ratio:.1f} at {n:,}")
    report.details = f"{len(parsers)} parsers; largest ratio {worst[0]:.2f}, of {worst[1]}"


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
