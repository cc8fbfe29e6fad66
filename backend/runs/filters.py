"""The query language of the runs list: text to a tree, which the repository turns into SQL.

    algorithm:paac environment:Pong score>10 tag:baseline or tag:new

Terms side by side must all hold; `or` joins its two neighbours before that, and `and` before `or`, so the
example asks for either tag. `not` and parentheses do what they say. A term is `field:value` (ids and tags
are equal, names and worlds contain it, in upper or lower case), `field=value`, `field!=value`, or a
comparison `>` `>=` `<` `<=` of numbers and times. A bare word is looked for in name, notes, algorithm,
environment, group and tags. Values with blanks or signs in them stand in double quotes.
"""

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from backend.specs.states import RunState
from backend.text import is_storable

Operator = Literal[":", "=", "!=", ">", ">=", "<", "<="]
Kind = Literal["id", "text", "number", "time", "flag", "tag"]

FIELDS: dict[str, Kind] = {
    "id": "id",
    "name": "text",
    "notes": "text",
    "algorithm": "id",
    "environment": "text",
    "state": "id",
    "group": "id",
    "host": "id",
    "queue": "id",
    "tag": "tag",
    "archived": "flag",
    "seed": "number",
    "priority": "number",
    "attempt": "number",
    "score": "number",
    "best_return": "number",
    "agent_steps": "number",
    "frames": "number",
    "updates": "number",
    "episodes": "number",
    "wall_time_s": "number",
    "agent_steps_per_s": "number",
    "created_at": "time",
    "started_at": "time",
    "ended_at": "time",
}
"""What a term may ask about."""

MAX_TERMS = 100
MAX_DEPTH = 20


class BadFilter(ValueError):
    """Text that is not a filter, with the reason in words a person can act on."""


@dataclass(frozen=True)
class Term:
    """One question about one field."""

    field: str
    operator: Operator
    value: str | float | datetime | bool


@dataclass(frozen=True)
class Word:
    """Text to look for anywhere."""

    text: str


@dataclass(frozen=True)
class All:
    """Every part must hold; with no parts, everything does."""

    parts: tuple["Node", ...]


@dataclass(frozen=True)
class Either:
    """At least one part must hold."""

    parts: tuple["Node", ...]


@dataclass(frozen=True)
class Not:
    """The part must not hold."""

    part: "Node"


Node = Term | Word | All | Either | Not

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<open>\() | (?P<close>\))
      | (?P<field>[A-Za-z_]+)(?P<operator>!=|>=|<=|[:=<>])
        (?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^\s()"]+))
      | "(?P<phrase>(?:[^"\\]|\\.)*)"
      | (?P<word>[^\s()"]+)
    )""",
    re.VERBOSE,
)


def parse(text: str) -> Node:
    """Read a filter.

    Raises:
        BadFilter: it cannot be read, or asks for a field or a comparison there is not.
    """
    if not is_storable(text):
        raise BadFilter("holds a character that cannot be stored")
    return _Parser(_tokens(text)).whole()


def term(field: str, operator: Operator, value: str) -> Term:
    """One checked term.

    Raises:
        BadFilter: no such field, or the value does not fit it.
    """
    kind = FIELDS.get(field.lower())
    if kind is None:
        raise BadFilter(f"there is no field {field!r:.40}; there are {', '.join(FIELDS)}")
    field = field.lower()
    if kind in ("id", "text", "tag", "flag") and operator in (">", ">=", "<", "<="):
        raise BadFilter(f"{field} cannot be compared with {operator}")
    if field == "state" and operator == ":":
        value = value.lower()
    if field == "state" and value not in set(RunState):
        raise BadFilter(f"there is no state {value!r:.40}; there are {', '.join(RunState)}")
    return Term(field, operator, _value(field, kind, value))


def _value(field: str, kind: Kind, text: str) -> str | float | datetime | bool:
    if kind == "number":
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise BadFilter(f"{field} needs a number, not {text!r:.40}")
        return number
    if kind == "time":
        try:
            time = datetime.fromisoformat(text)
            return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        except (ValueError, OverflowError):
            raise BadFilter(f"{field} needs a time such as 2026-01-31, not {text!r:.40}") from None
    if kind == "flag":
        if text.lower() not in ("true", "false"):
            raise BadFilter(f"{field} is true or false, not {text!r:.40}")
        return text.lower() == "true"
    return text


def _tokens(text: str) -> list[re.Match[str]]:
    tokens, end = [], len(text.rstrip())
    position = 0
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise BadFilter(f"cannot read {text[position : position + 20].strip()!r}: a quote is left open")
        tokens.append(match)
        position = match.end()
    if len(tokens) > MAX_TERMS * 2:
        raise BadFilter(f"more than {MAX_TERMS} terms")
    return tokens


class _Parser:
    """Recursive descent: side by side, then `or`, then `and`, then `not` and parentheses."""

    def __init__(self, tokens: list[re.Match[str]]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def whole(self) -> Node:
        node = self._beside()
        if self._at < len(self._tokens):
            raise BadFilter("a closing parenthesis too many")
        return node

    def _beside(self) -> Node:
        parts: list[Node] = []
        while self._at < len(self._tokens) and not self._next("close"):
            parts.append(self._joined())
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _joined(self) -> Node:
        alternatives = [self._tight()]
        while self._keyword("or"):
            alternatives.append(self._tight())
        return alternatives[0] if len(alternatives) == 1 else Either(tuple(alternatives))

    def _tight(self) -> Node:
        parts = [self._unary()]
        while self._keyword("and"):
            parts.append(self._unary())
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _unary(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise BadFilter("nested too deeply")
        try:
            if self._keyword("not"):
                return Not(self._unary())
            return self._single()
        finally:
            self._depth -= 1

    def _single(self) -> Node:
        if self._at == len(self._tokens):
            raise BadFilter("a term is missing at the end")
        token = self._tokens[self._at]
        if token["close"] or (token["word"] or "").lower() in ("and", "or"):
            raise BadFilter(f"a term is missing before {token[0].strip()!r}")
        self._at += 1
        if token["open"]:
            inner = self._beside()
            if not self._next("close"):
                raise BadFilter("a closing parenthesis is missing")
            self._at += 1
            return inner
        if token["field"]:
            operator: Operator = token["operator"]  # type: ignore[assignment]
            quoted = token["quoted"]
            return term(token["field"], operator, token["plain"] if quoted is None else _unquote(quoted))
        return Word(token["word"] if token["phrase"] is None else _unquote(token["phrase"]))

    def _next(self, group: str) -> bool:
        return self._at < len(self._tokens) and bool(self._tokens[self._at][group])

    def _keyword(self, word: str) -> bool:
        if self._at < len(self._tokens) and (self._tokens[self._at]["word"] or "").lower() == word:
            self._at += 1
            return True
        return False


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
