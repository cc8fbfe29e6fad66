"""Copies the built pages, the documentation and the migrations into the wheel.

Everything else is declared in pyproject.toml.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.errors import SetupError

ROOT = Path(__file__).resolve().parent
FOLDERS = {"frontend/dist": "backend/pages", "site": "backend/help", "alembic": "backend/migrations"}
"""Folder of the checkout -> folder of the wheel, where `backend/platform/files.py` finds it."""


class BuildPy(build_py):
    """Also copies `FOLDERS`. An editable installation reads them from the checkout."""

    def run(self) -> None:
        """Build, then copy."""
        super().run()
        if self.editable_mode:
            return
        if not (ROOT / "frontend/dist/index.html").is_file():
            raise SetupError("the pages are not built: run `make wheel`")
        if not (ROOT / "site/index.html").is_file():
            raise SetupError("the documentation is not built: run `make wheel`")
        for source, target in FOLDERS.items():
            copy = Path(self.build_lib) / target
            shutil.rmtree(copy, ignore_errors=True)  # names of former builds' files hold other hashes
            shutil.copytree(ROOT / source, copy, ignore=shutil.ignore_patterns("__pycache__", "*.map"))


setup(cmdclass={"build_py": BuildPy})
