"""Formulas of metrics: a small grammar, and its values over training.

    formula  = sum
    sum      = product { ("+" | "-") product }
    product  = signed { ("*" | "/") signed }
    signed   = { "+" | "-" } operand
    operand  = number | name | "(" sum ")" | "diff" "(" sum ")" | "log" "(" sum ")"
             | "ema" "(" sum "," number ")"

`−`, `×` and `÷` stand for `-`, `*` and `/`. A bare name has letters, digits, `_`, `.`, and slashes between
these without spaces: `loss/policy` is a metric, `loss/policy / loss/value` a quotient. Every other name
stands in backticks or double quotes.

Every part of a formula is a series over agent steps. Values of a metric at the same agent steps count as
their mean. An operation of two series has a value at each agent step at which either of them has one, with
the latest known value of the other, from where both have one on. `diff` is the difference from the value
before, `ema` the debiased moving average over the values of its argument (`smoothing.smooth_rows`), `log` the
natural logarithm. What is not defined, a quotient by 0 or the logarithm of a number that is not positive, is
NaN: a gap.

Hand-written: libraries that evaluate expressions have functions, attributes and powers that no request may
use, and none reports what is right at which character.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import numpy as np

from backend.analysis.metrics.smoothing import MAX_WEIGHT, smooth_rows
from backend.specs.problems import quoted
from backend.statistics.columns import Array

MAX_CHARACTERS = 200
MAX_DEPTH = 20
"""Parentheses and functions within each other."""

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
      | (?P<name>[^\W\d][\w.]*(?:/[\w.]+)*)
      | `(?P<backticks>[^`]*)` | "(?P<quotes>[^"]*)"
      | (?P<sign>[-+*/(),−×÷])
    )""",
    re.VERBOSE,
)
_USUAL = {"−": "-", "×": "*", "÷": "/"}
_FUNCTIONS = ("ema", "diff", "log")


class FormulaProblem(ValueError):
    """What is wrong with a formula, at which character, and what is right."""


class _Token(NamedTuple):
    kind: str
    """`number`, `name`, `quoted`, `end`, or the sign itself."""
    text: str
    at: int
    """Its first character, from 1."""


class _Operation(NamedTuple):
    """A step of the evaluation, which takes its operands from a stack."""

    name: str
    """`number`, `metric`, a sign, `negative`, or a function."""
    metric: str = ""
    number: float = 0.0


class Values(NamedTuple):
    """A series over agent steps."""

    steps: Array
    """Ascending, each once."""
    values: Array
    """f8, NaN for a gap."""


@dataclass(frozen=True)
class Formula:
    """A formula that has been read."""

    text: str
    operations: tuple[_Operation, ...]
    """In postfix order."""

    @property
    def metrics(self) -> list[str]:
        """The metrics that it names, each once."""
        return list(dict.fromkeys(step.metric for step in self.operations if step.name == "metric"))

    @property
    def only_metric(self) -> str | None:
        """The metric that it is; None if it does anything with it."""
        return self.operations[0].metric if len(self.operations) == 1 else None

    @classmethod
    def of_metric(cls, name: str) -> "Formula":
        """A metric itself, whatever its name."""
        return cls(name, (_Operation("metric", name),))

    @classmethod
    def parse(cls, text: str) -> "Formula":
        """Read a formula, in time linear in its length.

        Raises:
            FormulaProblem: it is none.
        """
        if len(text) > MAX_CHARACTERS:
            raise FormulaProblem(f"has {len(text)} characters: at most {MAX_CHARACTERS} are allowed")
        formula = cls(text, _Reader(text).parse())
        if not formula.metrics:
            raise FormulaProblem(
                "names no metric: a formula is of at least one, such as rollout/episode_return"
            )
        return formula

    def evaluate(self, series: Mapping[str, Values]) -> Values:
        """Its values.

        Args:
            series: by metric, all that it names.
        """
        stack: list[Values | float] = []
        for name, metric, number in self.operations:
            if name == "number":
                stack.append(number)
            elif name == "metric":
                stack.append(series[metric])
            elif name in _BINARY:
                right, left = stack.pop(), stack.pop()
                stack.append(_combine(_BINARY[name], left, right))
            else:
                stack.append(_apply(name, stack.pop(), number))
        [result] = stack
        assert isinstance(result, Values)  # it names a metric
        return result


def by_step(steps: Array, values: Array) -> Values:
    """Rows as a series: the mean of the finite values at each agent step, NaN without any. Where agent steps
    decrease, the largest so far is used."""
    if not len(steps):
        return Values(steps, values)
    ascending = np.maximum.accumulate(steps)
    firsts = np.flatnonzero(np.concatenate([[True], ascending[1:] != ascending[:-1]]))
    if len(firsts) == len(ascending):
        return Values(ascending, values)
    finite = np.isfinite(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.add.reduceat(np.where(finite, values, 0.0), firsts) / np.add.reduceat(
            finite.astype("<i8"), firsts
        )
    return Values(ascending[firsts], means)


def aligned(left: Values, right: Values) -> tuple[Array, Array, Array]:
    """The agent steps at which either has a value and both have had one, with the latest values of both."""
    if not len(left.steps) or not len(right.steps):
        return np.empty(0, "<i8"), np.empty(0), np.empty(0)
    if np.array_equal(left.steps, right.steps):
        return left.steps, left.values, right.values
    steps = np.union1d(left.steps, right.steps)
    steps = steps[steps >= max(left.steps[0], right.steps[0])]
    latest = [part.values[np.searchsorted(part.steps, steps, side="right") - 1] for part in (left, right)]
    return steps, latest[0], latest[1]


def _divide(left: Array, right: Array) -> Array:
    return np.where(right == 0, np.nan, left / np.where(right == 0, 1.0, right))


_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": _divide,
}


def _combine(
    operate: Callable[[Array, Array], Array], left: Values | float, right: Values | float
) -> Values | float:
    with np.errstate(all="ignore"):
        if isinstance(left, Values) and isinstance(right, Values):
            steps, of_left, of_right = aligned(left, right)
            return Values(steps, operate(of_left, of_right))
        if isinstance(left, Values):
            return Values(left.steps, operate(left.values, np.asarray(right)))
        if isinstance(right, Values):
            return Values(right.steps, operate(np.asarray(left), right.values))
        return float(operate(np.asarray(left, "f8"), np.asarray(right, "f8")))


def _apply(name: str, operand: Values | float, weight: float) -> Values | float:
    """A sign or a function."""
    if not isinstance(operand, Values):
        # A number is a series that never changes.
        if name == "log":
            return float(_log(np.asarray(operand)))
        return {"negative": -operand, "diff": 0.0, "ema": operand}[name]
    steps, values = operand
    if name == "negative":
        return Values(steps, -values)
    if name == "log":
        return Values(steps, _log(values))
    if name == "ema":
        return Values(steps, smooth_rows(values, weight) if weight and len(values) else values)
    with np.errstate(invalid="ignore"):
        return Values(steps, np.concatenate([np.full(min(1, len(values)), np.nan), np.diff(values)]))


def _log(values: Array) -> Array:
    return np.log(np.where(values > 0, values, np.nan))


class _Reader:
    """Reads one formula by recursive descent: each token is looked at once."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._at = 0
        self._depth = 0
        self._operations: list[_Operation] = []

    def parse(self) -> tuple[_Operation, ...]:
        self._sum()
        if self._next.kind != "end":
            what = "closes nothing" if self._next.kind == ")" else "has no operator before it"
            _refuse(self._next, f"{quoted(self._next.text)} {what}: use + − × ÷ between operands")
        return tuple(self._operations)

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._next
        self._at += token.kind != "end"
        return token

    def _sum(self) -> None:
        self._product()
        while self._next.kind in ("+", "-"):
            operator = self._take()
            self._product()
            self._operations.append(_Operation(operator.kind))

    def _product(self) -> None:
        self._signed()
        while self._next.kind in ("*", "/"):
            operator = self._take()
            self._signed()
            self._operations.append(_Operation(operator.kind))

    def _signed(self) -> None:
        n_negative = 0
        while self._next.kind in ("+", "-"):
            n_negative += self._take().kind == "-"
        self._operand()
        if n_negative % 2:
            self._operations.append(_Operation("negative"))

    def _operand(self) -> None:
        token = self._take()
        if token.kind == "number":
            self._operations.append(_Operation("number", number=_number(token)))
        elif token.kind == "(":
            self._within(token)
            self._expect(")")
        elif token.kind == "name" and self._next.kind == "(":
            self._function(token)
        elif token.kind in ("name", "quoted"):
            self._operations.append(_Operation("metric", token.text))
        else:
            what = "the formula ends" if token.kind == "end" else f"{quoted(token.text)} stands"
            _refuse(token, f"{what} where a number, a metric, a function or a parenthesis is due")

    def _function(self, token: _Token) -> None:
        if token.text not in _FUNCTIONS:
            _refuse(token, f"unknown function {quoted(token.text)}: use ema, diff or log")
        self._take()
        self._within(token)
        weight = 0.0
        if token.text == "ema":
            self._expect(",", "ema has a weight, as in ema(loss/value, 0.9)")
            given = self._take()
            weight = _number(given) if given.kind == "number" else -1.0
            if not 0 <= weight <= MAX_WEIGHT:
                _refuse(given, f"the weight of ema is a number from 0 to {MAX_WEIGHT}")
        self._expect(")")
        self._operations.append(_Operation(token.text, number=weight))

    def _within(self, token: _Token) -> None:
        """What stands in parentheses."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            _refuse(token, f"too deep: at most {MAX_DEPTH} parentheses and functions within each other")
        self._sum()
        self._depth -= 1

    def _expect(self, kind: str, why: str = "") -> None:
        token = self._take()
        if token.kind != kind:
            where = "the end of the formula" if token.kind == "end" else quoted(token.text)
            _refuse(token, f"{quoted(kind)} is due before {where}" + (f": {why}" if why else ""))


def _number(token: _Token) -> float:
    number = float(token.text)
    if not math.isfinite(number):
        _refuse(token, f"{quoted(token.text)} is too large")
    return number


def _tokens(text: str) -> list[_Token]:
    tokens = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at, end)
        if match is None:
            rest = text[at:end].lstrip()
            token = _Token("", rest[:1], end - len(rest) + 1)
            if rest[0] in '`"':
                _refuse(token, f"the name that starts with {rest[0]} has no closing {rest[0]}")
            _refuse(token, f"{quoted(rest[0])} means nothing in a formula: names with it stand in backticks")
        kind = str(match.lastgroup)
        content = match[kind]
        first = match.end() - len(match[0].lstrip()) + 1
        if kind in ("backticks", "quotes"):
            if not content:
                _refuse(_Token("", "", first), "a name in quotes is empty")
            tokens.append(_Token("quoted", content, first))
        elif kind == "sign":
            tokens.append(_Token(_USUAL.get(content, content), content, first))
        else:
            tokens.append(_Token(kind, content, first))
        at = match.end()
    return [*tokens, _Token("end", "", end + 1)]


def _refuse(token: _Token, what: str) -> NoReturn:
    raise FormulaProblem(f"at character {token.at}: {what}")
