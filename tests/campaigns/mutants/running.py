"""Tests against mutants: which lines each test reaches, and which test fails with a mutant."""

import ctypes
import gc
import json
import os
import resource
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from select import select
from signal import SIGKILL
from types import CodeType, FunctionType
from typing import NamedTuple, TextIO

import coverage
import psutil
import pytest

from tests.campaigns.mutants.drawing import Mutant

MAX_TESTS_S = 15.0
"""Where many tests reach a statement, the quickest run, up to so much processor time in all."""
MAX_START_S = 45
"""Processor time of a mutant beside three times that of its tests; it ends endless loops, not slow tests."""
MAX_WALL_S = 120
"""Of a mutant, beside that; it ends what waits for something that never comes."""
GATE = "not browser and not learning and not long and not benchmark"
LONG = "long and not browser and not learning and not benchmark"
"""Marks of the tests."""
IMPORTED = "ignore::pytest.PytestAssertRewriteWarning"
"""Libraries that are imported before pytest starts."""
PYTEST = ("-q", "-s", "-p", "no:cacheprovider", "--timeout=120", "-W", IMPORTED)
RUNNING_TEST = "CALLBOARD_MUTANTS_TEST"
"""Environment variable of what a test starts: its id."""
PR_SET_CHILD_SUBREAPER = 36
"""Of Linux."""


class Outcome(NamedTuple):
    """What became of a mutant."""

    state: str
    """`killed`, `survived`, or `unreached`: no test runs its statement."""
    by: str = ""
    """The test that failed."""


@dataclass
class Reach:
    """What a test that passes without a mutant takes and runs."""

    time_s: float
    """Of processors, in processes that it starts and waits for too: other load does not lengthen it."""
    lines: dict[str, list[int]] = field(default_factory=dict)
    """By file."""


Tests = dict[str, Reach]
"""By id."""


def forked(work: Callable[[TextIO], None], *, silent: bool = True, max_s: float | None = None) -> str:
    """What the work, done in a process of its own, writes to a file, or how that process died. It is killed
    after `max_s`, and then whatever it has started and not ended."""
    # What outlives its parent becomes a child of this process.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    with tempfile.TemporaryFile("w+") as answer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of threads that libraries have started
            pid = os.fork()
        if pid == 0:
            status = 1
            try:
                if silent:
                    nothing = os.open(os.devnull, os.O_WRONLY)
                    os.dup2(nothing, 1)
                    os.dup2(nothing, 2)
                work(answer)
                answer.flush()
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        end = os.pidfd_open(pid)
        if not select([end], [], [], max_s)[0]:
            os.kill(pid, SIGKILL)
        os.close(end)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        left = psutil.Process().children(recursive=True)
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left)
        answer.seek(0)
        return answer.read() or (f"exit status {status}" if status else "")


def _enter(folder: Path) -> None:
    """Import from the copy in this folder, here and in what is started from here."""
    root = Path(__file__).resolve().parents[3]
    ours = [str(folder), str(folder / "client")]
    os.chdir(folder)
    sys.path[:] = [*ours, *(path for path in sys.path if path not in ("", str(root), str(root / "client")))]
    os.environ["PYTHONPATH"] = os.pathsep.join(ours)


def _processor_time_s() -> float:
    return sum(os.times()[:4])


class _Measuring:
    """Times the tests that pass, and names what they run after them."""

    def __init__(self, watched: coverage.Coverage) -> None:
        self.tests: Tests = {}
        self._watched = watched
        self._started = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._watched.switch_context(item.nodeid)
        os.environ[RUNNING_TEST] = item.nodeid
        self._started = _processor_time_s()
        result = yield
        self._watched.switch_context("between tests")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.tests[report.nodeid] = Reach(_processor_time_s() - self._started)


def measured_tests(
    folder: Path, paths: Sequence[str], marks: str, sources: Sequence[str], kept: Path
) -> Tests:
    """The tests in these paths and the lines of the sources that each runs, in processes that it starts too;
    from the file if it exists."""

    def measure(answer: TextIO) -> None:
        _enter(folder)
        files = {source: str(folder / source) for source in sources}
        settings = folder / "mutants.coveragerc"
        lines = ["[run]", "parallel = true", f"data_file = {folder}/.coverage"]
        lines += [f"context = ${{{RUNNING_TEST}}}", "include =", *(f"    {file}" for file in files.values())]
        settings.write_text("\n".join(lines))
        os.environ["COVERAGE_PROCESS_START"] = str(settings)
        watched = coverage.Coverage(config_file=str(settings))
        measuring = _Measuring(watched)
        watched.start()
        pytest.main([*PYTEST, "-m", marks, "-k", "not postgresql", *paths], plugins=[measuring])
        watched.stop()
        watched.save()
        watched.combine()
        data = watched.get_data()
        for source, file in files.items():
            for line, names in data.contexts_by_lineno(file).items():
                for name in names:
                    if name in measuring.tests:
                        measuring.tests[name].lines.setdefault(source, []).append(line)
        json.dump({name: vars(test) for name, test in measuring.tests.items()}, answer)

    if not kept.exists():
        text = forked(measure, silent=False)
        json.loads(text)
        kept.write_text(text)
    return {name: Reach(**values) for name, values in json.loads(kept.read_text()).items()}


def _chosen(tests: Tests, mutant: Mutant, first: str) -> list[str]:
    """Ids of the tests that run the mutant's statement, the quickest first, after the one that is named."""
    statement = set(mutant.lines)

    def runs(test: Reach) -> bool:
        lines = test.lines.get(mutant.path, ())
        return not statement.isdisjoint(lines) if mutant.function else bool(lines)

    names = [name for name in tests if runs(tests[name]) or name == first]
    cheapest: list[str] = []
    total = 0.0
    for name in sorted(names, key=lambda name: (name != first, tests[name].time_s)):
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


@dataclass
class Campaign:
    """A copy of the source in which one mutant after another runs against the tests that reach it."""

    folder: Path
    tests: Tests
    first: Mapping[str, str]
    """By a mutant's key, the test that runs before the others."""
    on_outcome: Callable[[Mutant, Outcome], None]

    def run_in_functions(self, mutants: Sequence[Mutant]) -> None:
        """Run those that can be put into loaded functions, in forks of a process that has collected tests.

        `on_outcome` is called in that process, a fork of this one: what it keeps in memory is lost.
        """

        def work(_: TextIO) -> None:
            _enter(self.folder)
            files = sorted({name.partition("::")[0] for name in self.tests})
            pytest.main([*PYTEST, *files], plugins=[_Loop(self, mutants)])

        forked(work, silent=False)

    def run_in_files(self, mutants: Sequence[Mutant]) -> None:
        """Run these, in processes that import the changed file."""

        def work(names: Sequence[str], answer: TextIO) -> None:
            _enter(self.folder)
            failures = _Failures()
            status = pytest.main([*PYTEST, "-x", *names], plugins=[failures])
            if status != pytest.ExitCode.OK:
                answer.write(failures.ids[0] if failures.ids else "the import of its module")

        for mutant in mutants:
            self.run(mutant, work)

    def run(self, mutant: Mutant, work: Callable[[Sequence[str], TextIO], None]) -> None:
        """Have `work` run the tests in a process of its own, and write which fails. Meanwhile the file is
        changed: processes that the tests start import it."""
        names = self._chosen(mutant)
        if not names:
            self.on_outcome(mutant, Outcome("unreached"))
            return
        max_s = MAX_START_S + 3 * round(sum(self.tests[name].time_s for name in names))

        def limited(answer: TextIO) -> None:
            resource.setrlimit(resource.RLIMIT_CPU, (max_s, max_s + 5))
            sys.dont_write_bytecode = True
            os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
            work(names, answer)

        file = self.folder / mutant.path
        source, times = file.read_bytes(), file.stat()
        file.write_bytes(mutant.applied(source))
        try:
            failed = forked(limited, max_s=MAX_WALL_S + max_s)
        finally:
            file.write_bytes(source)
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # its bytecode is valid again
        self.on_outcome(mutant, Outcome("killed", failed) if failed else Outcome("survived"))

    def _chosen(self, mutant: Mutant) -> list[str]:
        """Ids of the tests that run the mutant's statement, the quickest first, after that of `first`."""
        statement = set(mutant.lines)
        first = self.first.get(mutant.key)

        def runs(test: Reach) -> bool:
            lines = test.lines.get(mutant.path, ())
            return not statement.isdisjoint(lines) if mutant.function else bool(lines)

        names = [name for name, test in self.tests.items() if name == first or runs(test)]
        cheapest: list[str] = []
        total = 0.0
        for name in sorted(names, key=lambda name: (name != first, self.tests[name].time_s)):
            total += self.tests[name].time_s
            if cheapest and total > MAX_TESTS_S:
                break
            cheapest.append(name)
        return cheapest


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


class _Loop(_Failures):
    """In place of pytest's loop over the tests it has collected: one process for each mutant."""

    def __init__(self, campaign: Campaign, mutants: Sequence[Mutant]) -> None:
        super().__init__()
        self._campaign = campaign
        self._mutants = mutants

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        import_module("tests.support.service")  # what its fixture imports for each mutant otherwise
        import_module("backend.app").find_resources()
        items = {item.nodeid: item for item in session.items}
        functions: dict[tuple[str, str, int], list[FunctionType]] = {}
        for function in gc.get_objects():
            if type(function) is FunctionType:  # objects of libraries may warn when asked for another
                code = function.__code__
                key = (code.co_filename, code.co_qualname, code.co_firstlineno)
                functions.setdefault(key, []).append(function)
        gc.freeze()
        for mutant in self._mutants:
            file = self._campaign.folder / mutant.path
            changed = compile(mutant.applied(file.read_bytes()), str(file), "exec", dont_inherit=True)
            pairs = [
                (function, code)
                for code in _codes(changed)
                if code.co_qualname == mutant.function
                for function in functions.get((str(file), code.co_qualname, code.co_firstlineno), [])
            ]
            if pairs and all(code.co_freevars == function.__code__.co_freevars for function, code in pairs):
                self._campaign.run(mutant, partial(self._play, pairs, items))
        return True

    def _play(
        self,
        pairs: Sequence[tuple[FunctionType, CodeType]],
        items: Mapping[str, pytest.Item],
        names: Sequence[str],
        answer: TextIO,
    ) -> None:
        for function, code in pairs:
            function.__code__ = code
        for name, following in zip(names, [*names[1:], None], strict=True):
            item = items[name]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following and items[following])
            if self.ids:
                answer.write(self.ids[0])
                return
