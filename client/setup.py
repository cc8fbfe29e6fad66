"""Reads the version of the server, which is defined once. Everything else is in pyproject.toml."""

import re
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).resolve().parent


def version() -> str:
    """Version of the checkout; in a source distribution, which has no server, that of its own metadata."""
    server, metadata = HERE.parent / "backend" / "__init__.py", HERE / "PKG-INFO"
    path, pattern = (
        (metadata, r"^Version: (.+)$") if metadata.is_file() else (server, r'^__version__ = "(.+)"$')
    )
    match = re.search(pattern, path.read_text("utf-8"), re.M)
    assert match is not None, f"{path} names no version"
    return match[1]


setup(version=version())
