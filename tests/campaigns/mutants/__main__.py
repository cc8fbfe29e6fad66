"""Which small errors in methods, evaluation and scoring no unit test notices.

    python -m tests.campaigns.mutants [--number 300] [--seed 16] [--results mutants.jsonl] [--contract]

Draws mutants by seed from the modules below, in a copy of the source, in random order. The units run once,
with the lines that each of them reaches; then, for each mutant, those that reach its statement, the quickest
first, until one fails. A mutant inside a function is put into the loaded modules of a forked process, which
saves the start. One outside of functions runs in a process that imports the changed file; so do, with
`--contract`, those that no unit has noticed, with the contract test of an algorithm that runs them. Results
are added to a file as they come; a later call continues there.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections import Counter
from importlib import import_module
from pathlib import Path

from tests.campaigns.mutants.drawing import Mutant, drawn
from tests.campaigns.mutants.running import (
    OPTIONS,
    PYTEST,
    Outcome,
    chosen,
    measured_tests,
    run_in_files,
    run_in_functions,
)

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
TESTS = (
    "tests/workers/engine/methods",
    "tests/workers/engine/training/test_evaluation.py",
    "tests/workers/engine/training/test_evaluation_loop.py",
    "tests/workers/engine/training/test_training.py",
    "tests/workers/engine/training/test_resumes.py",
    "tests/workers/engine/nn/test_policies.py",
    "tests/workers/engine/envs/test_atari.py",
    "tests/backend/specs/test_protocols.py",
    "tests/backend/runs/runs/test_groups.py",
)
LIBRARIES = ("torch", "numba", "gymnasium", "ale_py", "cv2", "sqlalchemy")
"""Imported before processes are forked."""
COPIED = (
    "backend",
    "workers",
    "callboard_environments",
    "tests",
    "alembic",
    "docs",
    "README.md",
    "pyproject.toml",
)


def copied(folder: Path) -> Path:
    """A copy of the source, in which a file may be changed."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "dist"))
        else:
            shutil.copy2(source, folder / name)
    return folder


SURVIVED, UNREACHED = Outcome("survived"), Outcome("unreached")
CONTRACTS = [
    f"tests/workers/engine/test_contract.py::{test}"
    for test in (
        "test_algorithm_trains_is_evaluated_changes_settings_and_stops",
        "test_resumed_algorithm_has_the_state_and_the_policy_of_its_checkpoint",
        "test_checkpoint_of_algorithm_names_each_parameter_and_has_them_once",
        "test_algorithm_fails_on_nan_and_its_checkpoints_stay_finite",
    )
]
METHODS = "workers/engine/methods/"
SHARED = ["paac", "dqn"]
"""What trains by the modules outside of the methods' packages."""


def contracts(mutant: Mutant) -> list[str]:
    """Ids of the contract tests that may run its code."""
    if not mutant.path.startswith("workers/"):
        return []
    module = Path(mutant.path)
    if module.parents[1] != Path(METHODS):
        names = SHARED
    else:
        # As the registry finds them, but without an import: the copies with mutants are imported later.
        declaring = [
            path.stem for path in sorted((ROOT / module.parent).glob("*.py")) if declares_method(path)
        ]
        names = [module.stem] if module.stem in declaring else declaring
    return [f"{contract}[{name}]" for contract in CONTRACTS for name in names]


def declares_method(path: Path) -> bool:
    """Whether a module is an algorithm's, whose id is its name."""
    return "\nMETHOD = " in path.read_text("utf-8")


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
            file.write(json.dumps({"mutant": key(mutant)} | outcome._asdict()) + "\n")
        sys.stdout.write(f"{outcome.state}: {mutant} {outcome.by}\n")
        sys.stdout.flush()

    def add_contract(self, mutant: Mutant, outcome: Outcome) -> None:
        """Store what the contract test, after the units, has found."""
        self.add(mutant, outcome if outcome.state == "killed" else Outcome("survived", "units, contract"))


def key(mutant: Mutant) -> str:
    """Identifies it within the same source."""
    return f"{mutant.path}:{mutant.start}-{mutant.end}: {mutant.old} -> {mutant.new}"


def main() -> None:
    """Draw, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--number", type=int, default=300)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--results", type=Path, default=Path("mutants.jsonl"))
    parser.add_argument("--contract", action="store_true", help="then the contract test, for those left")
    options = parser.parse_args()
    paths = sorted({str(p.relative_to(ROOT)) for pattern in MODULES for p in ROOT.glob(pattern)})
    mutants, n_all = drawn(ROOT, paths, options.number, options.seed)
    sys.stdout.write(f"{len(mutants)} of {n_all} mutants, seed {options.seed}\n")
    results = Results(options.results.resolve())
    kept = options.results.resolve().with_suffix(".tests.json")

    def left() -> list[Mutant]:
        done = results.read()
        return [mutant for mutant in mutants if key(mutant) not in done]

    for library in LIBRARIES:
        import_module(library)
    with tempfile.TemporaryDirectory(prefix="callboard-mutants-") as name:
        folder = copied(Path(name))
        tests = measured_tests(folder, TESTS, paths, kept)
        run_in_functions(folder, TESTS, tests, [mutant for mutant in left() if mutant.function], results.add)
        run_in_files(folder, lambda mutant: chosen(tests, mutant), left(), results.add, *OPTIONS)
        if options.contract:
            done = results.read()
            left_by_units = [mutant for mutant in mutants if done[key(mutant)] in (SURVIVED, UNREACHED)]
            run_in_files(folder, contracts, left_by_units, results.add_contract, *PYTEST, "--timeout=300")
    outcomes = results.read()
    states = Counter(outcomes[key(mutant)].state for mutant in mutants)
    sys.stdout.write(", ".join(f"{n} {state}" for state, n in states.most_common()) + "\n")


if __name__ == "__main__":
    main()
