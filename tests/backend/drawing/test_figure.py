import numpy as np
import pytest

from backend.drawing.figure import Figure


@pytest.mark.parametrize(
    ("buckets", "given"),
    [
        ([3, 4, 5], None),
        ([3], None),
        ([3, 5], [3, 5]),
        ([3, 3, 6], [3, 3, 6]),
        ([3, 3, 0, 7, 7], [3, 3, 0, 7, 7]),
    ],
)
def test_a_trace_has_its_buckets_unless_each_is_one_after_the_one_before(
    buckets: list[int], given: list[int] | None
) -> None:
    figure = Figure()
    numbers = {"y": np.array(buckets, float)}
    figure.add_growing("line", np.array(buckets), 3, dict, numbers)
    [trace] = figure.data
    sent = trace["meta"].get("bucket")
    assert (None if sent is None else sent.tolist()) == given
