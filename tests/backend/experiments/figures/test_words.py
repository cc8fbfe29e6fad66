import pytest

from backend.experiments.figures.words import in_tables


@pytest.mark.parametrize(
    ("value", "text"),
    [(44.985, "44.99"), (45.0, "45"), (0.12345, "0.1235"), (12_345.678, "12,345.7"),
     (1_234_567.8, "1,234,570"), (500, "500"), (12_345, "12,345"), (-20.125, "−20.13"), (0.0, "0"),
     (123_456_789, "123,456,789"), (2.5e9, "2.5e9"), (0.00012, "1.2e−4"), (-1.5e-5, "−1.5e−5")],
)  # fmt: skip
def test_finding_states_numbers_as_the_table_beside_it(value: float, text: str) -> None:
    assert in_tables(value) == text
