"""One tree of expected errors, which services raise. `backend.http.errors` maps them to responses.

Problem
├── Unauthenticated  not logged in
├── Forbidden        logged in, but not allowed
├── NotFound         no such object
├── Conflict         not possible in the current state
│   └── Overwritten  would overwrite what somebody else has changed meanwhile
├── Stale            the condition of a request (If-Match) does not hold
├── Gone             a stored file is damaged
├── Invalid          invalid fields, each named
├── TooMany          too many attempts: wait
└── Unavailable      the database or the artifact store is unavailable or busy: try again

A `code` names what was wrong for programs. Clients that keep what they cannot deliver, as the package
`callboard` does, give up only because of a code that was made for it; a sentence may change, and a status
alone may be that of a proxy.

`backend.specs.problems.InvalidSpec`, which the specs raise, is answered like `Invalid`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from backend.specs.extras import PACKAGES, install_command
from backend.specs.problems import MAX_PROBLEMS, FieldProblem, quoted

SECRET_FIELDS = frozenset({"password", "current", "new", "secret_url"})
"""Fields whose values are never quoted in a response or in the audit trail."""


class Problem(Exception):
    """Root of the tree: an expected error, not a bug."""

    code: str | None = None
    """For programs; of the class unless a problem has one of its own."""

    def __init__(
        self,
        detail: str,
        errors: Sequence[FieldProblem] = (),
        *,
        code: str | None = None,
        expected: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code or self.code
        self.expected = expected
        self.errors = list(errors[:MAX_PROBLEMS])


class Unauthenticated(Problem):
    """The request has no valid token or session."""

    code = "unauthenticated"

    def __init__(self, detail: str = "log in, or send a token", *, code: str | None = None) -> None:
        super().__init__(detail, code=code)


class Forbidden(Problem):
    """Logged in, but not allowed."""

    code = "forbidden"


class NotFound(Problem):
    """No such object."""


class Conflict(Problem):
    """Not possible in the object's current state."""


class Overwritten(Conflict):
    """A change would overwrite what somebody else has changed meanwhile; nothing was changed."""

    code = "changed_meanwhile"

    @classmethod
    def check(cls, stored: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
        """Refuse a change whose sender expects other values than the stored ones.

        Args:
            stored: the fields of the locked object.
            expected: field -> the value that the sender has read.

        Raises:
            Overwritten: with each field that has another value.
        """
        problems = [
            FieldProblem(field=name, message=f"has been changed meanwhile, to {quoted(stored.get(name))}")
            for name, value in expected.items()
            if stored.get(name) != value
        ]
        if problems:
            names = ", ".join(problem.field for problem in problems)
            raise cls(f"{names}: changed meanwhile; read the new value, and change it again", problems)


class Stale(Problem):
    """The request depends on a state of the object that it does not have any more; nothing was changed."""

    code = "precondition_failed"


class Gone(Problem):
    """A stored file is damaged, so that its content is lost."""


class Invalid(Problem):
    """Invalid fields, each named."""

    code = "invalid_fields"

    def __init__(self, errors: Sequence[FieldProblem], code: str | None = None) -> None:
        shown = "; ".join(f"{e.field}: {e.message}" for e in errors[:MAX_PROBLEMS])
        more = len(errors) - MAX_PROBLEMS
        super().__init__(shown + (f"; and {more:,} more" if more > 0 else ""), errors, code=code)

    @classmethod
    def field(cls, field: str, message: str, code: str | None = None) -> "Invalid":
        """With one invalid field."""
        return cls([FieldProblem(field=field, message=message)], code)

    @classmethod
    def missing_extra(cls, field: str, what: str, extra: str, instead: str) -> "Invalid":
        """What a field asks for needs an extra of the distribution that the server lacks.

        Args:
            field: the field.
            what: what needs it, in the plural.
            extra: the extra.
            instead: what can be had without it.
        """
        lacking = f"{what} need {PACKAGES[extra]}, which this server lacks"
        needed = f"{lacking}: there, {install_command(extra)}; {instead}"
        return cls.field(field, needed, code="missing_extra")


class TooMany(Problem):
    """Too many attempts: wait."""

    def __init__(self, detail: str, retry_after_s: float) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class Unavailable(Problem):
    """The database or the artifact store is unavailable or busy."""

    def __init__(self, detail: str, *, retry_after_s: float) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s
