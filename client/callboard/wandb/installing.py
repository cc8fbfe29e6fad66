"""Registers `callboard.wandb` as `wandb`, for libraries that import W&B themselves."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from types import ModuleType
from typing import Any

_NAME = "wandb"
_OWN = f"callboard.{_NAME}"
MODULES = frozenset(
    {
        *(
            "sdk",
            "apis",
            "data_types",
            "env",
            "integration",
            "proto",
            "analytics",
            "sklearn",
            "keras",
            "xgboost",
        ),
        *(
            "lightgbm",
            "catboost",
            "sacred",
            "gym",
            "jupyter",
            "profiler",
            "tensorboard",
            "tensorflow",
            "agents",
        ),
        *(
            "wandb_lib",
            "wandb_sdk",
            "wandb_agent",
            "wandb_torch",
            "docker",
            "filesync",
            "sync",
            "beta",
            "automations",
        ),
    }
)
"""Modules of W&B's that are no functions."""


class _Alias(Loader):
    """Loads `wandb.x` as `callboard.wandb.x`, or as a module whose names say that they do nothing."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module."""
        return submodule(spec.name[len(_NAME) :].lstrip("."))

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: it is loaded."""


def submodule(name: str) -> ModuleType:
    """A module of `callboard.wandb`; one that has no meaning here says so when its names are called."""
    own = f"{_OWN}.{name}" if name else _OWN
    try:
        return importlib.import_module(own)
    except ModuleNotFoundError as error:
        if error.name is None or not own.startswith(error.name):
            raise
    return _Stub(name)


class _Stub(ModuleType):
    """A module or function of W&B's that has no meaning here. Its names are those of `wandb`, else stubs."""

    def __init__(self, inside: str) -> None:
        super().__init__(f"{_NAME}.{inside}")
        self.__path__: list[str] = []
        self._inside = inside

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Say that the function does nothing."""
        from callboard.wandb.media import stub

        return stub(self._inside)(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        """A class or a function.

        Raises:
            AttributeError: the name is one of Python's own.
        """
        from callboard.wandb.media import stub

        if name.startswith("__"):
            raise AttributeError(name)
        inside = f"{self._inside}.{name}"
        return vars(importlib.import_module(_OWN)).get(name) or (
            stub(inside) if name[0].isupper() else _Stub(inside)
        )


class _Finder(MetaPathFinder):
    """Finds `wandb` and its modules, and says which version it stands for."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        """The module's specification."""
        if name == _NAME or name.startswith(f"{_NAME}."):
            return ModuleSpec(name, _Alias(), is_package=True)
        return None

    def find_distributions(self, context: Any = None) -> list[Distribution]:
        """The distribution, for libraries that ask for W&B's version before they import it."""
        context = context or DistributionFinder.Context()
        return [_Distribution()] if context.name in (None, _NAME) else []


class _Distribution(Distribution):
    """W&B as it is installed by `install`."""

    def read_text(self, filename: str) -> str | None:
        """The metadata: name and version."""
        version = importlib.import_module(_OWN).__version__
        metadata = f"Metadata-Version: 2.1\nName: {_NAME}\nVersion: {version}\n"
        return metadata if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        """No file."""
        return path


_finder = _Finder()


def install() -> None:
    """Let every later `import wandb` of this process log to Callboard, also that of libraries.

    Call it before the library is imported that imports W&B.

    Raises:
        RuntimeError: W&B itself has been imported.
    """
    module = sys.modules.get(_NAME)
    own = importlib.import_module(_OWN)
    if module is not None and module is not own:
        raise RuntimeError(
            "callboard.wandb.install: wandb is imported already: call it first, or change that import to "
            "`import callboard.wandb as wandb`"
        )
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    sys.modules[_NAME] = own
