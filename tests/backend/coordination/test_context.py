"""Errors of the database after which work is repeated."""

from psycopg import errors
from sqlalchemy import exc

from backend.coordination.context import retry_until_available


def test_action_is_repeated_while_postgresql_is_read_only() -> None:
    cause = errors.ReadOnlySqlTransaction("cannot execute UPDATE in a read-only transaction")
    failures = [exc.DBAPIError.instance("UPDATE run", {}, cause, errors.Error)]
    waited_for: list[Exception] = []

    def write() -> str:
        if failures:
            raise failures.pop()
        return "written"

    assert retry_until_available(write, waited_for.append) == "written"
    assert [str(error).splitlines()[0] for error in waited_for] == [
        "(psycopg.errors.ReadOnlySqlTransaction) cannot execute UPDATE in a read-only transaction"
    ]
