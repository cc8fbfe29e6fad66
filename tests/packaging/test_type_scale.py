"""The texts of the pages have the sizes of the type scale."""

import re
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "frontend/src"
SIZES = {"28px", "14px", "13px", "12px", "11px"}
"""The one number that matters, titles, text, secondary text, axes."""
OTHER = {"styles/global.css: 16px"}
"""The root, on which lengths in rem depend."""


def test_texts_have_the_sizes_of_the_type_scale() -> None:
    sizes = [
        (f"{file.relative_to(SOURCES).as_posix()}: {size}", size)
        for file in SOURCES.rglob("*.css")
        for size in re.findall(r"font-size: ([^;\s]+)", file.read_text("utf-8"))
    ]
    assert len(sizes) > 20
    assert {where for where, size in sizes if size not in SIZES} == OTHER
