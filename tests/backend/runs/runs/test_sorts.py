import re
from pathlib import Path

from backend.runs.runs.fields import MetricField, resolve
from backend.runs.runs.repository import SORTS

SEARCH = Path(__file__).parents[4] / "frontend/src/components/run/search.ts"


def test_pages_sort_by_every_column_that_the_service_sorts_by_and_by_no_unknown_field() -> None:
    [listed] = re.findall(r"const RUN_SORTS = \[(.*?)\]", SEARCH.read_text("utf-8"), re.DOTALL)
    names = set(re.findall(r"'(\w+)',", listed))
    names.remove("n")  # of groups
    assert SORTS.keys() <= names
    assert not any(isinstance(resolve(name), MetricField) for name in names - SORTS.keys())
