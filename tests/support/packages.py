"""Distributions with an algorithm or an environment, as pip leaves them in a folder."""

from pathlib import Path
from textwrap import dedent

SPEC = """
    from dataclasses import replace
    from callboard_algorithms.spec import PAAC
    ALGORITHM = replace(PAAC, id="{id}", title="Mine")
"""
ENVIRONMENT = """
    from callboard_algorithms.spec import CustomEnvironmentEntry
    ENVIRONMENT = CustomEnvironmentEntry(
        id="{id}",
        entry_point="tests.support.custom_environment:Line",
        title="Line",
        observation="vector",
        actions="discrete",
        action_names=("LEFT", "RIGHT"),
        kwargs={"length": 4},
    )
"""
ENGINE = """
    from callboard_algorithms.engine import Method
    METHOD = Method(None, None, None)
"""


class Site:
    """A folder of installed distributions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(
        self, name: str, spec: str = SPEC, algorithm: str = "mine", engine: str | None = ENGINE
    ) -> None:
        """Install version 1.0 of a distribution with an algorithm, whose method may be missing."""
        module = name.replace("-", "_")
        points = f"[callboard.algorithms]\n{algorithm} = {module}:ALGORITHM\n"
        if engine is not None:
            (self.folder / f"{module}_engine.py").write_text(dedent(engine))
            points += f"[callboard.methods]\n{algorithm} = {module}_engine:METHOD\n"
        self._write(name, dedent(spec).replace("{id}", algorithm), points)

    def install_environment(
        self, name: str, spec: str = ENVIRONMENT, environment: str = "Custom/Mine-v0"
    ) -> None:
        """Install version 1.0 of a distribution with an environment."""
        points = f"[callboard.environments]\n{environment} = {name.replace('-', '_')}:ENVIRONMENT\n"
        self._write(name, dedent(spec).replace("{id}", environment), points)

    def _write(self, name: str, spec: str, entry_points: str) -> None:
        module = name.replace("-", "_")
        (self.folder / f"{module}.py").write_text(spec)
        info = self.folder / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entry_points)
