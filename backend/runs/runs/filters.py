"""The filter language of the list of runs: text to a tree, which `conditions` turns into SQL.

    algorithm:paac environment:Pong score>10 tag:baseline or tag:new
    config.learning_rate>=1e-3 and eval/noop_starts/mean_return>15

Adjacent terms must all match; `or` binds tighter than adjacency, and `and` tighter than `or`, so that the
example matches either tag. `not` and parentheses are supported; `()` matches everything. A term is
`field:value` (ignoring case; a run's texts, such as its name, contain the value, while ids, tags, settings
and others equal it), `field=value`, `field!=value`, or a comparison `>` `>=` `<` `<=` of numbers and times,
without blanks. Fields are those of `backend.runs.runs.fields`. A bare word is searched in name, notes,
algorithm, environment, group and tags. Values with blanks, and words with comparison signs, must be in double
quotes, and so must fields that do not begin with a letter, or have other characters than letters, digits and
`_./-`, as in `"loss (train)/policy">1`.
"""

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from backend.platform.text import UNSTORABLE, is_storable
from backend.runs.runs.fields import Field, FieldKind, MetricField, RunField, UnknownField, resolve
from backend.specs.problems import quoted
from backend.specs.states import RunState

Operator = Literal[":", "=", "!=", ">", ">=", "<", "<="]
MAX_TERMS = 20
"""Fields, settings, metrics and words, each of which is compared for every run; `id=` and `id!=` cost little
and are not counted."""
MAX_DEPTH = 20


_WHOLE = re.compile("-?[0-9]{16,19}")
_MAX_EXACT = 2**53
"""Whole numbers up to it are floats without loss; a seed may be larger."""


class BadFilter(ValueError):
    """An invalid filter; the message states why."""


@dataclass(frozen=True)
class Term:
    """A comparison of one field."""

    field: str
    """As `fields.resolve` reads it."""
    operator: Operator
    value: str | float | datetime | bool


@dataclass(frozen=True)
class Word:
    """Text to search for."""

    text: str


@dataclass(frozen=True)
class All:
    """Every part must match; without parts, everything matches."""

    parts: tuple["Node", ...]


@dataclass(frozen=True)
class Either:
    """At least one part must match."""

    parts: tuple["Node", ...]


@dataclass(frozen=True)
class Not:
    """The part must not match."""

    part: "Node"


Node = Term | Word | All | Either | Not

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<open>\() | (?P<close>\))
      | (?:(?P<field>[^\W\d][\w./-]*)|"(?P<quoted_field>(?:[^"\\]|\\.)*)")(?P<operator>!=|>=|<=|[:=<>])
        (?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^\s()"]+))
      | "(?P<phrase>(?:[^"\\]|\\.)*)"
      | (?P<word>[^\s()"]+)
    )""",
    re.VERBOSE,
)
_COMPARISON = re.compile(r"!=|[<>]=?|[:=]")


def parse(text: str) -> Node:
    """Parse a filter.

    Raises:
        BadFilter: it is invalid, or has an unknown field or an invalid comparison.
    """
    if not is_storable(text):
        raise BadFilter(UNSTORABLE)
    return _Parser(_tokens(text)).whole()


def term(field: str, operator: Operator, value: str) -> Term:
    """One validated term.

    Raises:
        BadFilter: the field is unknown, or the value is invalid for it.
    """
    try:
        known = resolve(field)
    except UnknownField as error:
        raise BadFilter(str(error)) from None
    kind = "number" if isinstance(known, MetricField) else known.kind
    if isinstance(known, RunField):
        field = known.name
        if field == "state" and operator == ":":
            value = value.lower()
        if field == "state" and value not in set(RunState):
            raise BadFilter(f"unknown state {quoted(value)}; use one of {', '.join(RunState)}")
    if kind in ("id", "text", "tag", "flag") and operator in (">", ">=", "<", "<="):
        raise BadFilter(f"{field} does not support {operator}: use :, = or !=")
    read = _value(field, kind, value)
    if kind == "any" and operator in (">", ">=", "<", "<=") and not isinstance(read, float):
        raise BadFilter(f"{field} requires a number with {operator}, not {quoted(value)}")
    if kind == "any" and operator in (":", "=", "!=") and _WHOLE.fullmatch(value):
        number = int(value)
        if abs(number) > _MAX_EXACT:
            read = str(number)
    return Term(_canonical(field, known), operator, read)


def compared_fields(node: Node) -> set[Field]:
    """The fields that a filter compares."""
    match node:
        case All(parts) | Either(parts):
            return set().union(*map(compared_fields, parts))
        case Not(part):
            return compared_fields(part)
        case Term(field):
            return {resolve(field)}
        case Word():
            return set()


def _canonical(field: str, known: Field) -> str:
    return field if isinstance(known, MetricField) else known.name


def _value(field: str, kind: FieldKind, text: str) -> str | float | datetime | bool:
    if kind == "number":
        if _WHOLE.fullmatch(text) and _MAX_EXACT < int(text) < 2**63:
            return int(text)
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise BadFilter(f"{field} requires a number, not {quoted(text)}")
        return number
    if kind == "time":
        try:
            time = datetime.fromisoformat(text)
            return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        except (ValueError, OverflowError):
            raise BadFilter(f"{field} requires a time such as 2026-01-31, not {quoted(text)}") from None
    if kind == "any":
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            return number
        return text.lower() == "true" if text.lower() in ("true", "false") else text
    if kind == "flag":
        if text.lower() not in ("true", "false"):
            raise BadFilter(f"{field} must be true or false, not {quoted(text)}")
        return text.lower() == "true"
    return text


def _tokens(text: str) -> list[re.Match[str]]:
    tokens, end = [], len(text.rstrip())
    position = 0
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            after = text[position:].partition('"')[2]
            where = f"before {quoted(after)}" if after else "at the end"
            raise BadFilter(f"the double quote {where} is not closed")
        tokens.append(match)
        position = match.end()
    n_terms = sum(1 for token in tokens if not _is_connective(token) and not _is_exact_id(token))
    if n_terms > MAX_TERMS:
        raise BadFilter(f"has {n_terms} terms; the maximum is {MAX_TERMS}: split it into several filters")
    return tokens


def _is_connective(token: re.Match[str]) -> bool:
    """Whether it is a parenthesis, `and`, `or` or `not`."""
    word = (token["word"] or "").lower()
    return bool(token["open"] or token["close"]) or word in ("and", "or", "not")


def _is_exact_id(token: re.Match[str]) -> bool:
    return (token["field"] or "").lower() == "id" and token["operator"] in ("=", "!=")


class _Parser:
    """Recursive descent: adjacency, then `or`, then `and`, then `not` and parentheses."""

    def __init__(self, tokens: list[re.Match[str]]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def whole(self) -> Node:
        node = self._adjacent()
        if self._at < len(self._tokens):
            raise BadFilter("unmatched closing parenthesis")
        return node

    def _adjacent(self) -> Node:
        parts: list[Node] = []
        while self._at < len(self._tokens) and not self._is_at("close"):
            parts.append(self._alternatives())
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _alternatives(self) -> Node:
        alternatives = [self._conjunction()]
        while self._take_keyword("or"):
            alternatives.append(self._conjunction())
        return alternatives[0] if len(alternatives) == 1 else Either(tuple(alternatives))

    def _conjunction(self) -> Node:
        parts = [self._unary()]
        while self._take_keyword("and"):
            parts.append(self._unary())
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _unary(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise BadFilter("nested too deeply")
        try:
            if self._take_keyword("not"):
                return Not(self._unary())
            return self._single()
        finally:
            self._depth -= 1

    def _single(self) -> Node:
        if self._at == len(self._tokens):
            raise BadFilter("a term is missing at the end")
        token = self._tokens[self._at]
        if token["close"] or (token["word"] or "").lower() in ("and", "or"):
            raise BadFilter(f"a term is missing before {quoted(token[0].strip())}")
        self._at += 1
        if token["open"]:
            inner = self._adjacent()
            if not self._is_at("close"):
                raise BadFilter("a closing parenthesis is missing")
            self._at += 1
            return inner
        if token["operator"]:
            operator: Operator = token["operator"]  # type: ignore[assignment]
            field = token["field"] or _unquote(token["quoted_field"])
            text = token["plain"] if token["quoted"] is None else _unquote(token["quoted"])
            return term(field, operator, text)
        return Word(_word(token["word"]) if token["phrase"] is None else _unquote(token["phrase"]))

    def _is_at(self, group: str) -> bool:
        return self._at < len(self._tokens) and bool(self._tokens[self._at][group])

    def _take_keyword(self, word: str) -> bool:
        if self._at < len(self._tokens) and (self._tokens[self._at]["word"] or "").lower() == word:
            self._at += 1
            return True
        return False


def _word(word: str) -> str:
    """A word to search for.

    Raises:
        BadFilter: it has a comparison sign, so that it was hardly meant as text.
    """
    sign = _COMPARISON.search(word)
    if sign is None:
        return word
    if sign[0] == word:
        raise BadFilter(
            f"{quoted(word)} stands alone: write field, comparison and value without blanks, as in score>10"
        )
    if sign.end() == len(word):
        raise BadFilter(f"{quoted(word)} lacks a value: write it right after the comparison, as in score>10")
    raise BadFilter(f"cannot read {quoted(word)}: put text with a comparison sign in double quotes")


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
