"""Atari 2600 games, with the papers' settings as defaults (Mnih et al. 2015, 2016; Clemente et al. 2017).

`atari_games.csv` tells each game's ROM, minimal action set, modes and difficulties as ale-py has them;
`atari_scores.csv` holds what the papers published, each score with its protocol. Left out are the human and
random rows of Babaeizadeh et al. 2017, table 3, which swap two games and mix two protocols.
"""

import csv
from collections import defaultdict
from importlib import resources
from typing import Literal

from pydantic import ValidationInfo, field_validator

from backend.specs.environments.base import Environment, EnvironmentConfig, PublishedScore
from backend.specs.fields import setting


class AtariConfig(EnvironmentConfig):
    """Settings of every Atari game."""

    frame_skip: int = setting(
        4,
        ge=1,
        le=60,
        title="Action repeat",
        group="environment",
        unit="frames",
        description="Emulator frames for which one action is held.",
    )
    sticky_actions: float = setting(
        0.0,
        ge=0,
        lt=1,
        title="Sticky actions",
        group="environment",
        description="Probability, each frame, that the console keeps the action of the frame before "
        "(Machado et al. 2018 use 0.25; the papers here use none).",
    )
    full_action_set: bool = setting(
        False,
        title="Full action set",
        group="environment",
        shape=True,
        description="All 18 joystick actions, rather than those that mean something in this game.",
    )
    noop_max: int = setting(
        30,
        ge=0,
        le=200,
        title="No-op starts",
        group="environment",
        unit="frames",
        description="An episode starts with 1 to this many no-op frames; 0 starts at once.",
    )
    fire_at_reset: bool = setting(
        False,
        title="FIRE at reset",
        group="environment",
        description="FIRE is held for one decision after the no-ops, for games that wait for it. "
        "Not in the papers; evaluation never does it.",
    )
    max_frames: int = setting(
        108_000,
        ge=100,
        le=10_000_000,
        title="Longest episode",
        group="environment",
        unit="frames",
        description="An episode is cut off here: 108,000 frames are 30 minutes of play.",
    )
    life_loss_terminal: bool = setting(
        False,
        title="Life loss ends the return",
        group="environment",
        description="A lost life counts as terminal for learning; the game goes on.",
    )
    mode: int | None = setting(
        None,
        ge=0,
        le=100_000,
        title="Game mode",
        group="environment",
        description="The cartridge's game variation; nothing takes the game's default.",
    )
    difficulty: int | None = setting(
        None,
        ge=0,
        le=100,
        title="Difficulty switch",
        group="environment",
        description="Position of the console's difficulty switch; nothing takes the game's default.",
    )
    frame_maximum: Literal["rgb", "luminance"] = setting(
        "luminance",
        title="Maximum of two frames over",
        group="environment",
        description="rgb: the papers' maximum before greyscale. luminance: ALE's greyscale first, then the "
        "maximum, a little faster. Evaluation always uses rgb.",
    )

    picture_size: Literal["84x84", "42x42"] = setting(
        "84x84",
        title="Pictures of",
        group="environment",
        shape=True,
        unit="pixels",
        description="84x84: the papers'. 42x42: for the network compact, quicker on a small machine.",
    )

    crop: bool = setting(
        False,
        title="Crop the picture",
        group="environment",
        shape=True,
        description="Only rows 34 to 193 of the screen are seen: in Pong the field, without score and walls, "
        "so that what moves stands out. In some other games, such as Ms. Pac-Man, play is cut off too. "
        "Not in the papers.",
    )

    @field_validator("max_frames")
    @classmethod
    def _beyond_the_start(cls, max_frames: int, info: ValidationInfo) -> int:
        start = info.data.get("noop_max", 0) + info.data.get("frame_skip", 0) * info.data.get(
            "fire_at_reset", 0
        )
        if max_frames <= start:
            raise ValueError(f"must leave frames to play after up to {start} frames of starting (noop_max)")
        return max_frames


def _rows(file: str) -> list[dict[str, str]]:
    text = resources.files("backend.specs.environments").joinpath(file).read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


def _numbers(words: str) -> tuple[int, ...]:
    return tuple(int(word) for word in words.split())


def _games() -> tuple[Environment, ...]:
    published: dict[str, list[PublishedScore]] = defaultdict(list)
    for row in _rows("atari_scores.csv"):
        published[row["game"]].append(
            PublishedScore(row["label"], float(row["score"]), row["protocol"], row["source"])
        )
    return tuple(
        Environment(
            id=f"ALE/{row['game']}-v5",
            title=row["title"],
            family="atari",
            summary="Atari 2600 game; 84×84 luminance, four frames stacked.",
            observation="pixels",
            config=AtariConfig,
            evaluation_protocol="noop_starts",
            frames_per_agent_step=4,
            action_names=tuple(row["actions"].split()),
            observation_shape=(84, 84, 4),
            memory_bytes=12 * 2**20,
            published=tuple(published[row["game"]]),
            allowed={"mode": _numbers(row["modes"]), "difficulty": _numbers(row["difficulties"])},
        )
        for row in _rows("atari_games.csv")
    )


ATARI: tuple[Environment, ...] = _games()
