from backend import errors
from backend.errors import Invalid, Problem
from backend.http.errors import STATUSES, HttpProblem, status_of


def test_every_error_of_services_has_a_status() -> None:
    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Problem)}
    assert set(STATUSES) == kinds - {Problem}


def test_status_is_that_of_the_nearest_known_class() -> None:
    class StricterInvalid(Invalid):
        pass

    assert status_of(StricterInvalid.field("seed", "must be prime")) == 422
    assert status_of(HttpProblem("no")) == 400
    assert status_of(Problem("a bug")) == 500
