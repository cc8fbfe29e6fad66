"""Which small errors in Python modules no test notices.

    python -m tests.campaigns.mutants [--modules PATTERN ...] [--number 300] [--seed 16] [--long]
    python -m tests.campaigns.mutants --again BEFORE [--results AFTER]

Draws mutants by seed from the modules, by default those of methods, evaluation and scoring, in a copy of the
source. The tests in the mirrored folders run once, with the lines that each reaches: those of `make test`
without a browser, PostgreSQL or training to a score. Then, for each mutant, those run that reach its
statement, the quickest first, until one fails; with `--long`, for those left, the tests marked `long` too.
Results are added to a file as they come; a later call on the same source continues there, with the tests
measured beside it. `--again` runs what died in earlier results, the test that failed there first, and prints
what no test notices now; where a file has another name since, change it in those results.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from tests.campaigns.mutants.drawing import Mutant, drawn, mutants_of
from tests.campaigns.mutants.running import GATE, LONG, Campaign, Outcome, measured_tests

ROOT = Path(__file__).resolve().parents[3]
MODULES = (
    "workers/engine/methods/**/*.py",
    "workers/engine/training/evaluation.py",
    "workers/engine/training/scoring.py",
    "workers/engine/nn/policies.py",
    "workers/engine/envs/atari.py",
    "backend/specs/protocols.py",
    "backend/specs/environments/base.py",
    "backend/runs/runs/groups.py",
)
LIBRARIES = (
    "torch",
    "numba",
    "gymnasium",
    "ale_py",
    "cv2",
    "alembic",
    "fastapi",
    "httpx",
    "uvicorn",
    "celery",
)
"""Imported before processes are forked."""


def copied(folder: Path) -> Path:
    """A copy of the source, in which a file may be changed."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():  # else it is deleted, and not yet in the index
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def mirrored(path: str) -> str:
    """The folder of tests for a module: that of the same name, or else that of a folder above."""
    folders = (Path("tests") / folder for folder in Path(path).parents)
    return str(next(folder for folder in folders if (ROOT / folder).is_dir()))


SURVIVED, UNREACHED = Outcome("survived"), Outcome("unreached")


class Results:
    """Outcomes by mutant, in a file to which several processes may add."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> dict[str, Outcome]:
        """Those there are, by mutant."""
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        entries = [json.loads(line) for line in lines]
        return {entry["mutant"]: Outcome(entry["state"], entry["by"]) for entry in entries}

    def add(self, mutant: Mutant, outcome: Outcome) -> None:
        """Store and print one."""
        with self._path.open("a") as file:
            entry = {"mutant": mutant.key, "line": mutant.line} | outcome._asdict()
            file.write(json.dumps(entry) + "\n")
        sys.stdout.write(f"{outcome.state}: {mutant} {outcome.by}\n")
        sys.stdout.flush()

    def add_long(self, mutant: Mutant, outcome: Outcome) -> None:
        """Store what the long tests, after the others, have shown."""
        states = (outcome.state, self.read()[mutant.key].state)
        state = next(state for state in ("killed", "survived", "unreached") if state in states)
        self.add(mutant, Outcome(state, outcome.by or "long tests too"))

    def left(self, mutants: Iterable[Mutant]) -> list[Mutant]:
        """Those without an outcome."""
        done = self.read()
        return [mutant for mutant in mutants if mutant.key not in done]

    def left_by_gate(self, mutants: Iterable[Mutant]) -> list[Mutant]:
        """Those that no test has noticed, without the long ones."""
        done = self.read()
        return [mutant for mutant in mutants if done[mutant.key] in (SURVIVED, UNREACHED)]


def killed(before: Iterable[tuple[str, Outcome]]) -> list[Mutant]:
    """The mutants that died in earlier results, as far as this source has them."""
    keys = [key for key, outcome in before if outcome.state == "killed"]
    paths = sorted({key.partition(":")[0] for key in keys})
    every = {
        mutant.key: mutant for path in paths if (ROOT / path).exists() for mutant in mutants_of(ROOT, path)
    }
    for key in keys:
        if key not in every:
            sys.stdout.write(f"no longer in the source: {key}\n")
    return [every[key] for key in keys if key in every]


def main() -> None:
    """Draw, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--modules", nargs="+", default=MODULES, metavar="PATTERN")
    parser.add_argument("--tests", nargs="+", metavar="PATH", help="instead of the mirrored folders")
    parser.add_argument("--number", type=int, default=300)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--results", type=Path, default=Path("mutants.jsonl"))
    parser.add_argument("--long", action="store_true", help="then the tests marked `long`, for those left")
    parser.add_argument(
        "--again", type=Path, metavar="RESULTS", help="what died in these, in place of a draw"
    )
    options = parser.parse_args()
    before = Results(options.again).read() if options.again else {}
    if options.again:
        mutants = killed(before.items())
        paths = sorted({mutant.path for mutant in mutants})
        sys.stdout.write(f"{len(mutants)} mutants that died in {options.again}\n")
    else:
        paths = sorted({str(p.relative_to(ROOT)) for pattern in options.modules for p in ROOT.glob(pattern)})
        mutants, n_all = drawn(ROOT, paths, options.number, options.seed)
        sys.stdout.write(f"{len(mutants)} of {n_all} mutants, seed {options.seed}\n")
    places = options.tests or sorted({mirrored(path) for path in paths})
    file = options.results.resolve()
    results = Results(file)
    for library in LIBRARIES:
        import_module(library)
    first = {key: outcome.by for key, outcome in before.items()}
    with tempfile.TemporaryDirectory(prefix="callboard-mutants-") as name:
        folder = copied(Path(name))
        tests = measured_tests(folder, places, GATE, paths, file.with_suffix(".tests.json"))
        campaign = Campaign(folder, tests, first, results.add)
        campaign.run_in_functions([mutant for mutant in results.left(mutants) if mutant.function])
        campaign.run_in_files(results.left(mutants))
        if options.long:
            tests = measured_tests(folder, places, LONG, paths, file.with_suffix(".long.json"))
            campaign = Campaign(folder, tests, first, results.add_long)
            campaign.run_in_files(results.left_by_gate(mutants))
    outcomes = results.read()
    states = Counter(outcomes[mutant.key].state for mutant in mutants)
    sys.stdout.write(", ".join(f"{n} {state}" for state, n in states.most_common()) + "\n")
    if options.again:
        for mutant in mutants:
            if outcomes[mutant.key].state != "killed":
                sys.stdout.write(f"died before: {mutant} {before[mutant.key].by}\n")


if __name__ == "__main__":
    main()
