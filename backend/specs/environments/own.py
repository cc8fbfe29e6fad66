"""Worlds of a host's owner: gymnasium environments, named in a file on that host and never through the API.

The file is TOML, a table a world:

    ["Own/Grid-v0"]
    entry_point = "my_worlds.grid:Grid"
    title = "Grid"
    observation = "vector"
    actions = "discrete"
    action_names = ["UP", "DOWN", "LEFT", "RIGHT"]
    kwargs = { size = 7 }

Everything but `entry_point` and `kwargs` may be known elsewhere: hosts publish it, and a run carries it.
"""

import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, JsonValue, StringConstraints, ValidationError

from backend.specs.algorithms.base import Actions, Observation
from backend.specs.environments.base import Environment, EnvironmentConfig
from backend.specs.fields import Strict, setting

PREFIX = "Own/"
FILE_VARIABLE = "CALLBOARD_ENVIRONMENTS_FILE"
"""Names the file, to a worker and to the engines it starts."""

Word = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f]*$")]


class OwnConfig(EnvironmentConfig):
    """Settings of a host's own world."""

    max_episode_agent_steps: int | None = setting(
        None,
        ge=1,
        le=10_000_000,
        title="Longest episode",
        group="environment",
        unit="agent steps",
        description="An episode is cut off here; nothing leaves its end to the world. The value of what "
        "follows is still counted.",
    )


class OwnWorld(Strict):
    """What may be known of a world without running its code."""

    id: Annotated[str, StringConstraints(pattern=r"^Own/[A-Za-z0-9][A-Za-z0-9_-]{0,60}-v[0-9]{1,4}$")]
    title: Word
    summary: Annotated[str, StringConstraints(max_length=300)] = ""
    observation: Observation
    """`vector` for a Box of (D,) numbers, `pixels` for (H, W, C) bytes, which are brought to 84×84."""
    actions: Actions
    action_names: tuple[Word, ...] = Field(min_length=1, max_length=1_000, strict=False)
    memory_bytes: int = Field(default=64 * 2**20, ge=0, le=2**40)

    def environment(self) -> Environment:
        """As the catalogue has the others."""
        return Environment(
            id=self.id,
            title=self.title,
            family="own",
            summary=self.summary,
            observation=self.observation,
            config=OwnConfig,
            evaluation_protocol="plain",
            frames_per_agent_step=1,
            action_names=self.action_names,
            actions=self.actions,
            memory_bytes=self.memory_bytes,
        )


class OwnEntry(OwnWorld):
    """A world and where its code is."""

    entry_point: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")]
    """`module:Environment`, importable where the worker runs."""
    kwargs: dict[str, JsonValue] = Field(default={})
    """Given to it, beside `render_mode="rgb_array"`."""

    def described(self) -> OwnWorld:
        """Without its code."""
        return OwnWorld.model_validate(self.model_dump(include=set(OwnWorld.model_fields)))


class OwnWorldsError(ValueError):
    """The file of a host's own worlds cannot be used; the message names the file and the field."""


def read_own(path: Path) -> dict[str, OwnEntry]:
    """Every world in the file, by id.

    Raises:
        OwnWorldsError: it is missing, no TOML, or something in it is wrong.
    """
    try:
        tables: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise OwnWorldsError(f"{path}: {error}") from None
    found = {}
    for name, table in tables.items():
        try:
            found[name] = OwnEntry.model_validate({"id": name} | dict(table))
        except (TypeError, ValueError) as error:
            first = error.errors()[0] if isinstance(error, ValidationError) else None
            field = ".".join([name, *(str(part) for part in first["loc"])]) if first else name
            raise OwnWorldsError(f"{path}: {field}: {first['msg'] if first else error}") from None
    return found
