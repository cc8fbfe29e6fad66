"""Algorithms and environments of other distributions: which are found, and why others are off."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from backend.specs.algorithms import ALGORITHMS, Algorithm
from backend.specs.algorithms.packages import find_method, find_packages
from backend.specs.declared import Declared, PackageError
from backend.specs.environments.installed import installed_environments
from tests.support import custom_environment
from tests.support.packages import ENVIRONMENT, SPEC, Site


def packages_found() -> Declared[Algorithm]:
    return find_packages([name for name, known in ALGORITHMS.items() if known.package is None])


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.syspath_prepend(str(tmp_path))
    yield Site(tmp_path)
    for file in tmp_path.glob("*.py"):
        sys.modules.pop(file.stem, None)


def test_algorithm_of_a_distribution_names_it_and_its_version(site: Site) -> None:
    site.install("good-one", algorithm="good")
    packages = packages_found()
    assert packages.problems == {}
    [algorithm] = packages.values.values()
    assert (algorithm.id, algorithm.title, algorithm.package) == ("good", "Mine", "good-one==1.0")
    assert find_method(algorithm).value == "good_one_engine:METHOD"
    with pytest.raises(PackageError, match=r"good-one==2\.0 declares no method good"):
        find_method(replace(algorithm, package="good-one==2.0"))


@pytest.mark.parametrize(
    ("name", "spec", "algorithm", "problem"),
    [
        ("raises", "raise RuntimeError('no licence')", "mine", "RuntimeError: no licence"),
        ("leaves", "raise SystemExit(3)", "mine", "SystemExit: 3"),
        ("lacks", "import a_module_that_is_not_installed", "mine", "ModuleNotFoundError: No module named"),
        ("nothing", "ALGORITHM = 5", "mine", "nothing:ALGORITHM is no Algorithm but a int"),
        ("ours", SPEC, "paac", "the id paac is that of another algorithm, which stays"),
        ("spaced", SPEC, "Mine", "the id Mine must have lower-case letters, digits and _"),
        ("other", SPEC.replace("{id}", "another"), "mine", "other:ALGORITHM has the id another, not mine"),
        (
            "bare",
            SPEC.replace("title", "sources={}, title"),
            "mine",
            "bare:ALGORITHM: sources has nothing of beta, centre, ",
        ),
        (
            "preset",
            SPEC.replace("title", "presets=(replace(PAAC.presets[0], config={'n_w': -1}),), title"),
            "mine",
            "PaacConfig: n_w: must be at least 1",
        ),
    ],
)
def test_distribution_with_a_problem_is_off_and_says_why(
    site: Site, name: str, spec: str, algorithm: str, problem: str
) -> None:
    site.install(name, spec, algorithm)
    site.install("good-beside", algorithm="good_beside")
    packages = packages_found()
    assert list(packages.values) == ["good_beside"]
    [(package, why)] = packages.problems.items()
    assert package == f"{name}==1.0"
    assert why.startswith(problem)


def test_distribution_without_a_method_is_off(site: Site) -> None:
    site.install("half", engine=None)
    problem = "half==1.0 declares no method mine in callboard.methods"
    assert packages_found().problems == {"half==1.0": problem}


def test_of_two_distributions_with_one_id_both_are_off(site: Site) -> None:
    site.install("first-of-two")
    site.install("second-of-two")
    assert packages_found() == Declared(
        {},
        {
            "first-of-two==1.0": "second-of-two==1.0 has an algorithm mine too: both are off",
            "second-of-two==1.0": "first-of-two==1.0 has an algorithm mine too: both are off",
        },
    )


def test_environment_of_a_distribution_is_beside_those_of_the_file(site: Site, tmp_path: Path) -> None:
    site.install_environment("good-lines")
    file = custom_environment.write(tmp_path)
    declared = installed_environments(file)
    assert list(declared.values) == ["Custom/Line-v0", "Custom/Frames-v1", "Custom/Mine-v0"]
    packages = [entry.describe().package for entry in declared.values.values()]
    assert packages == [None, None, "good-lines==1.0"]
    assert list(installed_environments(None).values) == ["Custom/Mine-v0"]


@pytest.mark.parametrize(
    ("spec", "environment", "problem"),
    [
        ("raise RuntimeError('no licence')", "Custom/Mine-v0", "RuntimeError: no licence"),
        ("ENVIRONMENT = 5", "Custom/Mine-v0", "odd_lines:ENVIRONMENT is no CustomEnvironmentEntry but a int"),
        (ENVIRONMENT, "Custom/Line-v0", "the id Custom/Line-v0 is that of another environment, which stays"),
        (ENVIRONMENT, "CartPole-v1", "the id CartPole-v1 must be Custom/, up to 61 letters"),
        (
            ENVIRONMENT.replace("vector", "sound"),
            "Custom/Mine-v0",
            "CustomEnvironmentEntry: observation: must",
        ),
    ],
)
def test_distribution_with_a_problem_in_its_environment_is_off_and_says_why(
    site: Site, tmp_path: Path, spec: str, environment: str, problem: str
) -> None:
    site.install_environment("odd-lines", spec, environment)
    site.install_environment("good-lines", environment="Custom/Good-v0")
    declared = installed_environments(custom_environment.write(tmp_path))
    assert list(declared.values) == ["Custom/Line-v0", "Custom/Frames-v1", "Custom/Good-v0"]
    [(package, why)] = declared.problems.items()
    assert package == "odd-lines==1.0"
    assert why.startswith(problem)
