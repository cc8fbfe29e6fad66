import math
import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.analysis.metrics.formulas import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    Formula,
    FormulaProblem,
    Values,
    by_step,
)

Slow = dict[int, float]
"""A series as an oracle has it: agent steps -> value."""


def series(points: Slow) -> Values:
    return Values(np.array(sorted(points), "<i8"), np.array([points[step] for step in sorted(points)], "f8"))


def evaluate(text: str, **of: Slow) -> Slow:
    formula = Formula.parse(text)
    result = formula.evaluate({name: series(points) for name, points in of.items()})
    return dict(zip(result.steps.tolist(), result.values.tolist(), strict=True))


def same(result: Slow, expected: Slow) -> bool:
    return result.keys() == expected.keys() and np.allclose(
        [*result.values()], [expected[step] for step in result], equal_nan=True, rtol=1e-9
    )


A: Slow = {1: 4.0, 3: 6.0, 5: -2.0}
B: Slow = {2: 2.0, 3: 0.0, 6: 1.0}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", A),
        ("-a", {1: -4.0, 3: -6.0, 5: 2.0}),
        ("--a", A),
        ("2 * a + 1", {1: 9.0, 3: 13.0, 5: -3.0}),
        ("2 × (a − 1)", {1: 6.0, 3: 10.0, 5: -6.0}),
        ("a - 1 - 1", {1: 2.0, 3: 4.0, 5: -4.0}),
        ("12 / a / 3", {1: 1.0, 3: 12 / 18, 5: -2.0}),
        ("a ÷ 2", {1: 2.0, 3: 3.0, 5: -1.0}),
        ("1e2 * .5 * a", {1: 200.0, 3: 300.0, 5: -100.0}),
        ("a / (1 - 1)", dict.fromkeys(A, math.nan)),
        ("a + b", {2: 6.0, 3: 6.0, 5: -2.0, 6: -1.0}),
        ("a / b", {2: 2.0, 3: math.nan, 5: math.nan, 6: -2.0}),
        ("diff(a)", {1: math.nan, 3: 2.0, 5: -8.0}),
        ("diff(a) + 0 * b", {2: math.nan, 3: 2.0, 5: -8.0, 6: -8.0}),
        ("log(a)", {1: math.log(4), 3: math.log(6), 5: math.nan}),
        ("a + log(1 - 1)", dict.fromkeys(A, math.nan)),
        ("ema(a, 0.5)", {1: 4.0, 3: 8 / 1.5, 5: (-2.0 + 3.0 + 1.0) / 1.75}),
        ("ema(a, 0)", A),
        ("a * ema(2, 0.9) + diff(3)", {1: 8.0, 3: 12.0, 5: -4.0}),
    ],
)
def test_formula_has_its_values(text: str, expected: Slow) -> None:
    names = Formula.parse(text).metrics
    assert same(evaluate(text, **{name: {"a": A, "b": B}[name] for name in names}), expected)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("loss/policy", ["loss/policy"]),
        ("loss/policy / loss/value", ["loss/policy", "loss/value"]),
        ("`my metric-1`*2", ["my metric-1"]),
        ('"a b" - `c`', ["a b", "c"]),
        ("eval/30_noop/mean.return", ["eval/30_noop/mean.return"]),
        ("ema + diff(log)", ["ema", "log"]),
        ("Öl/größe", ["Öl/größe"]),
        ("a + a", ["a"]),
    ],
)
def test_names_of_metrics(text: str, names: list[str]) -> None:
    assert Formula.parse(text).metrics == names


@pytest.mark.parametrize(
    ("text", "at", "why"),
    [
        ("sin(a)", 1, 'unknown function "sin": use ema, diff or log'),
        ("2 * sin(a)", 5, "unknown function"),
        ("a b", 3, "no operator before it"),
        ("a)", 2, "closes nothing"),
        ("(a", 3, '")" is due before the end'),
        ("", 1, "the formula ends where a number"),
        ("a +", 4, "the formula ends"),
        ("a & b", 3, '"&" means nothing'),
        ("a + `b", 5, "no closing `"),
        ('a + ""', 5, "empty"),
        ("ema(a)", 6, "ema has a weight, as in ema(loss/value, 0.9)"),
        ("ema(a, 1)", 8, "a number from 0 to 0.9999"),
        ("ema(a, b)", 8, "a number from 0 to 0.9999"),
        ("diff(a, 2)", 7, '")" is due before ","'),
        ("1e999 * a", 1, "too large"),
        ("(" * (MAX_DEPTH + 1) + "a" + ")" * (MAX_DEPTH + 1), MAX_DEPTH + 1, "too deep"),
        ("__import__('os')", 12, '"\'" means nothing'),
        ("a ** 2", 4, '"*" stands where'),
    ],
)
def test_wrong_formula_is_refused_at_its_character(text: str, at: int, why: str) -> None:
    with pytest.raises(FormulaProblem) as refused:
        Formula.parse(text)
    assert str(refused.value).startswith(f"at character {at}: ")
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("text", "why"), [("1 + 2", "names no metric"), ("a" * (MAX_CHARACTERS + 1), "at most 200 are allowed")]
)
def test_formula_without_a_place_is_refused(text: str, why: str) -> None:
    with pytest.raises(FormulaProblem, match=why):
        Formula.parse(text)


@given(st.text(alphabet='ab1.,()+-*/−×÷`" edifloгm', max_size=MAX_CHARACTERS))
def test_any_text_is_a_formula_or_refused(text: str) -> None:
    try:
        formula = Formula.parse(text)
    except FormulaProblem:
        return
    assert formula.metrics


@pytest.mark.parametrize(
    "text", ["a" + "+a" * 99, "-" * 199 + "a", "(a)*" * 49 + "(a)", "`" * 200, " " * 200]
)
def test_formula_is_read_once(text: str) -> None:
    """The number of calls grows with the length of a formula and no faster."""
    assert _calls(text) <= 12 * len(text) + 50


def _calls(text: str) -> int:
    n_calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal n_calls
        n_calls += event == "call"

    sys.setprofile(count)
    try:
        Formula.parse(text)
    except FormulaProblem:
        pass
    finally:
        sys.setprofile(None)
    return n_calls


# Random formulas beside a slow evaluation: each part is a dictionary from agent steps to values.

Tree = tuple[str, Callable[[dict[str, Slow]], Slow | float]]


def _at(points: Slow, step: int) -> float | None:
    known = [earlier for earlier in points if earlier <= step]
    return points[max(known)] if known else None


def _binary(sign: str, left: Tree, right: Tree) -> Tree:
    def operate(a: float, b: float) -> float:
        if sign == "/":
            return math.nan if b == 0 else a / b
        return {"+": a + b, "-": a - b, "*": a * b}[sign]

    def slow(of: dict[str, Slow]) -> Slow | float:
        a, b = left[1](of), right[1](of)
        if isinstance(a, float) and isinstance(b, float):
            return operate(a, b)
        steps = sorted({*(a if isinstance(a, dict) else ()), *(b if isinstance(b, dict) else ())})
        result = {}
        for step in steps:
            of_a = _at(a, step) if isinstance(a, dict) else a
            of_b = _at(b, step) if isinstance(b, dict) else b
            if of_a is not None and of_b is not None:
                result[step] = operate(of_a, of_b)
        return result

    return f"({left[0]}) {sign} ({right[0]})", slow


def _function(name: str, weight: float, argument: Tree) -> Tree:
    def slow(of: dict[str, Slow]) -> Slow | float:
        points = argument[1](of)
        if isinstance(points, float):
            return {"diff": 0.0, "ema": points}.get(name, math.log(points) if points > 0 else math.nan)
        values, steps = list(points.values()), list(points)
        if name == "diff":
            before = [math.nan, *values]
            return {step: value - last for step, value, last in zip(steps, values, before, strict=False)}
        if name == "log":
            return {s: math.log(v) if v > 0 else math.nan for s, v in points.items()}
        result = {}
        for n, step in enumerate(steps):
            weights = [weight ** (n - m) if math.isfinite(values[m]) else 0.0 for m in range(n + 1)]
            total = sum(w * v for w, v in zip(weights, values, strict=False) if w)
            result[step] = total / sum(weights) if math.isfinite(values[n]) else math.nan
        return result

    return (f"{name}({argument[0]}, {weight})" if name == "ema" else f"{name}({argument[0]})"), slow


def _leaf(name: str) -> Tree:
    return name, lambda of: dict(sorted(of[name].items()))


def _number(value: int) -> Tree:
    return str(value), lambda _: float(value)


TREES = st.recursive(
    st.sampled_from([_leaf(name) for name in "abc"]) | st.integers(0, 3).map(_number),
    lambda inner: (
        st.builds(_binary, st.sampled_from("+-*/"), inner, inner)
        | st.builds(_function, st.sampled_from(["ema", "diff", "log"]), st.sampled_from([0.25, 0.5]), inner)
    ),
    max_leaves=6,
)
POINTS = st.dictionaries(st.integers(0, 12), st.integers(-3, 3).map(float), max_size=8)


@settings(max_examples=300)
@given(TREES, st.fixed_dictionaries(dict.fromkeys("abc", POINTS)))
def test_random_formula_has_the_values_of_a_slow_one(tree: Tree, of: dict[str, Slow]) -> None:
    text, slow = tree
    if len(text) > MAX_CHARACTERS or not any(name in text.replace("ema", "") for name in "abc"):
        return
    expected = slow(of)
    if not isinstance(expected, dict):
        return  # names no metric
    assert same(evaluate(text, **of), expected)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(-3, 3) | st.just(math.nan)), max_size=12))
def test_values_at_the_same_agent_step_count_as_their_mean(rows: list[tuple[int, float]]) -> None:
    furthest = 0
    at: dict[int, list[float]] = {}
    for step, value in rows:
        furthest = max(furthest, step)
        at.setdefault(furthest, []).append(value)
    expected = {}
    for step, values in at.items():
        finite = [value for value in values if math.isfinite(value)]
        expected[step] = sum(finite) / len(finite) if finite else math.nan
    merged = by_step(np.array([s for s, _ in rows], "<i8"), np.array([v for _, v in rows], "f8"))
    assert same(dict(zip(merged.steps.tolist(), merged.values.tolist(), strict=True)), expected)
