"""Custom gymnasium environments of a host, named in a file on that host and never through the API.

The file is TOML, with one table per environment:

    ["Custom/Grid-v0"]
    entry_point = "my_environments.grid:Grid"
    title = "Grid"
    observation = "vector"
    actions = "discrete"
    action_names = ["UP", "DOWN", "LEFT", "RIGHT"]
    kwargs = { size = 7 }

Modules next to the file can be imported. `entry_point` and `kwargs` stay on the host. Hosts publish the rest,
and each run's spec holds it.
"""

import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, JsonValue, StringConstraints, ValidationError

from backend.specs.environments.base import USUAL_EPISODE_AGENT_STEPS, Environment, EnvironmentConfig
from backend.specs.fields import CUSTOM_ID, ENTRY_POINT, WITHOUT_CONTROLS, Strict, setting
from backend.specs.problems import explain, problems_of
from backend.specs.spaces import Actions, Observation

FILE_VARIABLE = "CALLBOARD_ENVIRONMENTS_FILE"
"""The environment variable that names the file, for a worker and the engines it starts."""

Word = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=WITHOUT_CONTROLS)]


class CustomConfig(EnvironmentConfig):
    """Settings of a custom environment."""

    max_episode_agent_steps: int | None = setting(
        None,
        ge=1,
        le=10_000_000,
        title="Max episode length",
        group="environment",
        unit="agent steps",
        description="An episode is truncated after this many agent steps; the return then bootstraps from "
        "the value of the last observation. Leave empty for no limit.",
    )

    @property
    def longest_episode_agent_steps(self) -> int:
        """The limit, or gymnasium's usual one."""
        return self.max_episode_agent_steps or USUAL_EPISODE_AGENT_STEPS


class CustomEnvironment(Strict):
    """The public description of a custom environment, without its code."""

    id: Annotated[str, StringConstraints(pattern=CUSTOM_ID)]
    title: Word
    summary: Annotated[str, StringConstraints(max_length=300)] = ""
    observation: Observation
    """`vector` for a Box of (D,) numbers; `pixels` for (H, W, C) bytes, which are resized to 84×84."""
    actions: Actions
    action_names: tuple[Word, ...] = Field(min_length=1, max_length=1_000, strict=False)
    memory_bytes: int = Field(default=64 * 2**20, ge=0, le=2**40)
    package: str | None = None
    """The distribution that it is of with its version; None for one of the host's file. Only hosts with this
    version claim a run."""

    def environment(self) -> Environment:
        """The same as an environment of the catalogue."""
        return Environment(
            id=self.id,
            title=self.title,
            family="custom",
            summary=self.summary,
            observation=self.observation,
            config=CustomConfig,
            frames_per_agent_step=1,
            action_names=self.action_names,
            actions=self.actions,
            memory_bytes=self.memory_bytes,
        )


class CustomEnvironmentEntry(CustomEnvironment):
    """A custom environment and its code."""

    entry_point: Annotated[str, StringConstraints(pattern=ENTRY_POINT)]
    """`module:Class`; modules next to the file can be imported."""
    kwargs: dict[str, JsonValue] = Field(default={})
    """Arguments of the class, in addition to `render_mode="rgb_array"`."""

    def describe(self) -> CustomEnvironment:
        """The public description."""
        return CustomEnvironment.model_validate(self.model_dump(include=set(CustomEnvironment.model_fields)))


class CustomEnvironmentsError(ValueError):
    """The file of a host's custom environments is invalid; the message names the file and the field."""


def read_custom_environments(path: Path) -> dict[str, CustomEnvironmentEntry]:
    """Read every environment in the file, by id.

    Raises:
        CustomEnvironmentsError: the file is missing, is not TOML, or has an invalid field.
    """
    try:
        tables: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CustomEnvironmentsError(f"{path}: {error}") from None
    entries: dict[str, CustomEnvironmentEntry] = {}
    for name, table in tables.items():
        try:
            entry = CustomEnvironmentEntry.model_validate({"id": name} | dict(table))
        except ValidationError as error:
            first = explain(problems_of(error, name), CustomEnvironmentEntry.model_fields)[0]
            raise CustomEnvironmentsError(f"{path}: {first.field}: {first.message}") from None
        except (TypeError, ValueError):
            raise CustomEnvironmentsError(f"{path}: {name}: must be a table") from None
        if entry.package is not None:
            raise CustomEnvironmentsError(
                f"{path}: {name}.package: only a distribution's environment has one"
            )
        if entry.id in entries:
            raise CustomEnvironmentsError(f"{path}: {name}: {entry.id} is defined twice")
        entries[entry.id] = entry
    return entries
