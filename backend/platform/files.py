"""Folders that a wheel holds inside `backend` and a checkout next to it; `setup.py` copies them.

So the places where a wheel and a checkout differ are named once.
"""

from pathlib import Path

_BACKEND = Path(__file__).resolve().parents[1]


def migrations() -> Path:
    """Alembic's folder: its `env.py` and the migrations."""
    return _folder("migrations", "alembic")


def pages() -> Path:
    """The built pages, which are missing from a checkout until they are built."""
    return _folder("pages", "frontend/dist")


def documentation() -> Path:
    """The documentation as a site, which is missing from a checkout until it is built."""
    return _folder("help", "site")


def _folder(in_wheel: str, in_checkout: str) -> Path:
    packaged = _BACKEND / in_wheel
    return packaged if packaged.is_dir() else _BACKEND.parent / in_checkout


def existing_folder(path: Path) -> Path:
    """The folder, or the one of its parents in which it would be created."""
    return next(folder for folder in (path, *path.parents) if folder.exists())
