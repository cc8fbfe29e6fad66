import pytest
from starlette.datastructures import QueryParams

from backend.analysis.metrics.parameters import n_buckets


@pytest.mark.parametrize(
    ("query", "n"),
    [
        ("run=a", 1000),
        ("run=a&run=b&metric=m&metric=n&points=10", 40),
        ("run=a&figure=curve:m&figure=curve:n&points=10", 20),
        ("run=a&metric=m&source=*&points=10", 320),
        ("run=a&metric=m&points=none", 1000),
    ],
)
def test_buckets_of_a_request_are_those_of_all_that_it_repeats(query: str, n: int) -> None:
    assert n_buckets(QueryParams(query)) == n
