"""Algorithms of other distributions: which are found, and why others are off."""

from dataclasses import replace
from pathlib import Path

import pytest

from backend.specs.algorithms import ALGORITHMS
from backend.specs.algorithms.packages import PackageError, Packages, find_method, find_packages
from tests.support.packages import SPEC, Site


def packages_found() -> Packages:
    return find_packages({name: known for name, known in ALGORITHMS.items() if known.package is None})


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.syspath_prepend(str(tmp_path))
    return Site(tmp_path)


def test_algorithm_of_a_distribution_names_it_and_its_version(site: Site) -> None:
    site.install("good-one", algorithm="good")
    packages = packages_found()
    assert packages.problems == {}
    [algorithm] = packages.algorithms.values()
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
        ("ours", SPEC, "paac", "the id paac is that of an algorithm of Callboard, which stays"),
        ("spaced", SPEC, "Mine", "the id Mine must have lower-case letters, digits and _"),
        ("other", SPEC.replace("{id}", "another"), "mine", "other:ALGORITHM has the id another, not mine"),
        (
            "bare",
            SPEC.replace("title", "sources={}, title"),
            "mine",
            "bare:ALGORITHM: sources has nothing of beta, centre, ",
        ),
    ],
)
def test_distribution_with_a_problem_is_off_and_says_why(
    site: Site, name: str, spec: str, algorithm: str, problem: str
) -> None:
    site.install(name, spec, algorithm)
    site.install(f"good-beside-{name}", algorithm=f"good_beside_{name}")
    packages = packages_found()
    assert list(packages.algorithms) == [f"good_beside_{name}"]
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
    assert packages_found() == Packages(
        {},
        {
            "first-of-two==1.0": "second-of-two==1.0 has an algorithm mine too: both are off",
            "second-of-two==1.0": "first-of-two==1.0 has an algorithm mine too: both are off",
        },
    )
