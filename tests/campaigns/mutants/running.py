"""Units against mutants, in forked processes."""

import gc
import json
import os
import resource
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from select import select
from signal import SIGKILL
from types import CodeType, FunctionType
from typing import NamedTuple, TextIO

import coverage
import psutil
import pytest

from tests.campaigns.mutants.drawing import Mutant
from tests.quick import UNITS

MAX_CPU_S = 120
"""Of a mutant; it ends endless loops, not slow tests."""
MAX_WALL_S = 300
"""Of a mutant; it ends processes that wait for something that never comes."""
MAX_TESTS_S = 15.0
"""Where many tests reach a statement, the quickest run, up to so long in all."""
PYTEST = ("-q", "-s", "-p", "no:cacheprovider")
OPTIONS = (*PYTEST, "--timeout=120", "--hypothesis-profile=quick", "-m", UNITS)
MARK = "CALLBOARD_MUTANTS_OF"
"""Environment variable of what tests start."""


class Outcome(NamedTuple):
    """What became of a mutant."""

    state: str
    """`killed`, `survived`, or `unreached`: no unit runs its statement."""
    by: str = ""
    """The test that failed."""


@dataclass
class Reach:
    """What a test that passes without a mutant takes and runs."""

    time_s: float
    lines: dict[str, list[int]] = field(default_factory=dict)
    """By file."""


Tests = dict[str, Reach]
"""By id."""
OnOutcome = Callable[[Mutant, Outcome], None]


def forked(work: Callable[[TextIO], None], *, silent: bool = True, max_s: float | None = None) -> str:
    """What the work, done in a process of its own, writes to a pipe, or how that process died. It is killed
    if it has written nothing after `max_s`."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads that libraries have started
        pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(read)
            if silent:
                nothing = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nothing, 1)
                os.dup2(nothing, 2)
            with os.fdopen(write, "w") as pipe:
                work(pipe)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read) as pipe:
        if not select([pipe], [], [], max_s)[0]:
            os.kill(pid, SIGKILL)
        text = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return text or (f"exit status {status}" if status else "")


def enter(folder: Path) -> None:
    """Import from the copy in this folder."""
    root = str(Path(__file__).resolve().parents[3])
    os.chdir(folder)
    sys.path[:] = [str(folder), *(path for path in sys.path if path not in ("", root))]
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.environ[MARK] = str(os.getppid())


class _Measuring:
    """Times the tests that pass, and names what they run after them."""

    def __init__(self, watched: coverage.Coverage) -> None:
        self.tests: Tests = {}
        self._watched = watched
        self._started = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._watched.switch_context(item.nodeid)
        self._started = time.monotonic()
        result = yield
        self._watched.switch_context("between tests")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.tests[report.nodeid] = Reach(time.monotonic() - self._started)


def measured_tests(folder: Path, paths: Sequence[str], sources: Sequence[str], kept: Path) -> Tests:
    """The units in these paths and the lines of the sources that each runs; from the file if it exists."""

    def measure(pipe: TextIO) -> None:
        enter(folder)
        files = [str(folder / source) for source in sources]
        watched = coverage.Coverage(data_file=None, config_file=False, include=files)
        measuring = _Measuring(watched)
        watched.start()
        pytest.main([*OPTIONS, *paths], plugins=[measuring])
        watched.stop()
        data = watched.get_data()
        for source, file in zip(sources, files, strict=True):
            for line, names in data.contexts_by_lineno(file).items():
                for name in names:
                    if name in measuring.tests:
                        measuring.tests[name].lines.setdefault(source, []).append(line)
        json.dump({name: vars(test) for name, test in measuring.tests.items()}, pipe)

    if not kept.exists():
        text = forked(measure, silent=False)
        json.loads(text)
        kept.write_text(text)
    return {name: Reach(**values) for name, values in json.loads(kept.read_text()).items()}


def chosen(tests: Tests, mutant: Mutant) -> list[str]:
    """Ids of the tests that run the mutant's statement, the quickest first."""
    statement = set(mutant.lines)

    def runs(test: Reach) -> bool:
        lines = test.lines.get(mutant.path, ())
        return not statement.isdisjoint(lines) if mutant.function else bool(lines)

    cheapest: list[str] = []
    total = 0.0
    for name in sorted((name for name in tests if runs(tests[name])), key=lambda name: tests[name].time_s):
        total += tests[name].time_s
        if cheapest and total > MAX_TESTS_S:
            break
        cheapest.append(name)
    return cheapest


class _Failures:
    def __init__(self) -> None:
        self.ids: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.ids.append(report.nodeid)


def _outcome(failed: str) -> Outcome:
    return Outcome("killed", failed) if failed else Outcome("survived")


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_S, MAX_CPU_S + 5))


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


class _Loop(_Failures):
    """In place of pytest's loop over the tests it has collected: one process for each mutant."""

    def __init__(self, folder: Path, tests: Tests, mutants: Sequence[Mutant], on_outcome: OnOutcome) -> None:
        super().__init__()
        self._folder = folder
        self._tests = tests
        self._mutants = mutants
        self._on_outcome = on_outcome

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        functions: dict[tuple[str, str, int], list[FunctionType]] = {}
        for function in gc.get_objects():
            if type(function) is FunctionType:  # objects of libraries may warn when asked for another
                code = function.__code__
                key = (code.co_filename, code.co_qualname, code.co_firstlineno)
                functions.setdefault(key, []).append(function)
        gc.freeze()
        for mutant in self._mutants:
            file = self._folder / mutant.path
            changed = compile(mutant.applied(file.read_bytes()), str(file), "exec", dont_inherit=True)
            pairs = [
                (function, code)
                for code in _codes(changed)
                if code.co_qualname == mutant.function
                for function in functions.get((str(file), code.co_qualname, code.co_firstlineno), [])
            ]
            if not pairs or any(
                code.co_freevars != function.__code__.co_freevars for function, code in pairs
            ):
                continue  # it needs a process that imports the changed file
            names = [name for name in chosen(self._tests, mutant) if name in items]
            if not names:
                self._on_outcome(mutant, Outcome("unreached"))
                continue
            play = partial(self._play, pairs, [items[name] for name in names])
            self._on_outcome(mutant, _outcome(forked(play, max_s=MAX_WALL_S)))
        return True

    def _play(
        self, pairs: Sequence[tuple[FunctionType, CodeType]], items: Sequence[pytest.Item], pipe: TextIO
    ) -> None:
        _limit()
        for function, code in pairs:
            function.__code__ = code
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.ids:
                pipe.write(self.ids[0])
                return


def run_in_functions(
    folder: Path, paths: Sequence[str], tests: Tests, mutants: Sequence[Mutant], on_outcome: OnOutcome
) -> None:
    """Run those that can be put into loaded functions, in forks of a process that has collected all tests.

    `on_outcome` is called in that process, a fork of this one: what it keeps in memory is lost.
    """

    def work(_: TextIO) -> None:
        enter(folder)
        pytest.main([*OPTIONS, *paths], plugins=[_Loop(folder, tests, mutants, on_outcome)])

    forked(work, silent=False)


def run_in_files(
    folder: Path,
    ids_of: Callable[[Mutant], list[str]],
    mutants: Sequence[Mutant],
    on_outcome: OnOutcome,
    *options: str,
) -> None:
    """Run those that need a changed file, and a process that imports it, with these tests for each.
    `on_outcome` is called in this process."""

    def work(names: list[str], pipe: TextIO) -> None:
        _limit()
        enter(folder)
        failures = _Failures()
        status = pytest.main([*options, "-x", *names], plugins=[failures])
        if status != pytest.ExitCode.OK:
            pipe.write(failures.ids[0] if failures.ids else "the import of its module")

    for mutant in mutants:
        file = folder / mutant.path
        source = file.read_bytes()
        names = ids_of(mutant)
        if not names:
            on_outcome(mutant, Outcome("unreached"))
            continue
        file.write_bytes(mutant.applied(source))
        try:
            on_outcome(mutant, _outcome(forked(partial(work, names), max_s=MAX_WALL_S)))
        finally:
            file.write_bytes(source)
            _kill_left()


def _kill_left() -> None:
    """What the tests of a mutant have started and not ended."""
    me = psutil.Process()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process != me and process.environ().get(MARK) == str(me.pid):
                process.kill()
