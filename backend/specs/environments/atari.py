"""Atari 2600 games, with the papers' settings as defaults (Mnih et al. 2015, 2016; Clemente et al. 2017).

`atari_games.csv` lists each game's ROM with its MD5 and SHA-256, minimal action set, modes and difficulties,
as ale-py has them.
`atari_scores.csv` and `atari_a3c_and_noop_scores.csv` list published scores with their protocols. The second
has the scores of a random agent and of a person from no-op starts, by which scores of that protocol are
normalised, and A3C's. The human and random rows of Babaeizadeh et
al. 2017, table 3, are left out: they swap two games and mix two protocols.
`atari_crop.csv` lists the share of each game's changing pixels that the setting `crop` hides, as
`python -m tests.support.crop_share` measures it: of all pixels that differ between the screens before and
after each of 250 random decisions, those above row 34 or below row 193, score digits included.
"""

import csv
from collections import defaultdict
from collections.abc import Mapping
from importlib import resources
from typing import ClassVar, Literal

from pydantic import ValidationInfo, field_validator

from backend.specs.environments.base import Environment, EnvironmentConfig, PublishedScore
from backend.specs.fields import setting
from backend.specs.protocols import ATARI_PROTOCOLS


class AtariConfig(EnvironmentConfig):
    """Settings of every Atari game."""

    stacks_frames: ClassVar[bool] = True

    frame_skip: int = setting(
        4,
        ge=1,
        le=60,
        title="Action repeat",
        group="environment",
        unit="frames",
        description="Emulator frames for which each action is repeated.",
    )
    sticky_actions: float = setting(
        0.0,
        ge=0,
        lt=1,
        title="Sticky actions",
        group="environment",
        description="Probability, at each frame, that the emulator repeats the previous action (Machado et "
        "al. 2018 use 0.25; the papers here use none). An agent trained with them is evaluated with the "
        "protocol sticky_actions_5min.",
    )
    full_action_set: bool = setting(
        False,
        title="Full action set",
        group="environment",
        shape=True,
        description="All 18 joystick actions instead of the minimal action set of the game.",
    )
    noop_max: int = setting(
        30,
        ge=0,
        le=200,
        title="No-op starts",
        group="environment",
        unit="frames",
        description="A training episode starts with 1 to this many no-op frames; 0: none. Evaluation does "
        "as its protocol.",
    )
    fire_at_reset: bool = setting(
        False,
        title="FIRE at reset",
        group="environment",
        description="Presses FIRE for one agent step after the no-ops, for games that wait for it. Not in "
        "the papers; never used in evaluation.",
    )
    max_frames: int = setting(
        108_000,
        ge=100,
        le=10_000_000,
        title="Max episode length",
        group="environment",
        unit="frames",
        description="A training episode is truncated after this many frames; 108,000 frames are 30 minutes "
        "of play. Evaluation follows its protocol.",
    )
    life_loss_terminal: bool = setting(
        False,
        title="Terminal on life loss (episodic life)",
        group="environment",
        description="Treats a lost life as the end of an episode for learning; the game continues.",
    )
    mode: int | None = setting(
        None,
        ge=0,
        le=100_000,
        title="Game mode",
        group="environment",
        description="The cartridge's game variation; leave empty for the default.",
    )
    difficulty: int | None = setting(
        None,
        ge=0,
        le=100,
        title="Difficulty switch",
        group="environment",
        description="Position of the console's difficulty switch; leave empty for the default.",
    )
    frame_maximum: Literal["rgb", "luminance"] = setting(
        "luminance",
        title="Max-pool frames",
        group="environment",
        description="How the last two frames are combined. rgb: maximum of the RGB frames, then greyscale, "
        "as in the papers. luminance: ALE's greyscale, then the maximum, a little faster. Evaluation always "
        "uses rgb.",
    )

    observation_size: Literal["84x84", "42x42"] = setting(
        "84x84",
        title="Observation size",
        common=True,
        group="environment",
        shape=True,
        unit="pixels",
        description="84x84: the papers'. 42x42: for the network compact, faster on a small machine.",
    )

    crop: bool = setting(
        False,
        title="Crop frame",
        group="environment",
        shape=True,
        description="Uses only rows 34 to 193 of the screen: in Pong the playing field, without score and "
        "walls, so that moving objects stand out. In other games this cuts off a part of the field. Not in "
        "the papers.",
    )

    @property
    def own_protocol(self) -> str | None:
        """`sticky_actions_5min` if the agent trains with sticky actions."""
        return "sticky_actions_5min" if self.sticky_actions else None

    @property
    def longest_episode_agent_steps(self) -> int:
        """The agent steps of `max_frames`."""
        return -(-self.max_frames // self.frame_skip)

    def resized(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of observations of `observation_size`."""
        side = int(self.observation_size.partition("x")[0])
        return (side, side, *shape[2:])

    @field_validator("max_frames")
    @classmethod
    def _beyond_the_start(cls, max_frames: int, info: ValidationInfo) -> int:
        start = info.data.get("noop_max", 0) + info.data.get("frame_skip", 0) * info.data.get(
            "fire_at_reset", 0
        )
        if max_frames <= start:
            raise ValueError(
                f"must exceed the up to {start} frames of no-ops and FIRE at the start (noop_max)"
            )
        return max_frames


_TRAINED = {
    "A3C": "320 million frames (on what hardware is not known here)",
    "A3C FF": "4 days on 16 CPU cores",
    "A3C FF 1 day": "1 day on 16 CPU cores",
    "A3C LSTM": "4 days on 16 CPU cores",
    "DQN": "12 to 14 days on a GPU",
    "Gorila": "up to 6 days with 100 actors and learners and 31 shards",
    "PAAC nips": "115 million agent steps on a GTX 980 Ti and 4 cores",
    "PAAC nature": "115 million agent steps on a GTX 980 Ti and 4 cores",
    "GA3C": "1 day on a GPU",
}
"""How long published agents were trained, and on what, as their papers state."""


def _source(row: Mapping[str, str]) -> str:
    trained = _TRAINED.get(row["label"])
    return f"{row['source']}; trained for {trained}" if trained else row["source"]


def _rows(file: str) -> list[dict[str, str]]:
    text = resources.files("backend.specs.environments").joinpath(file).read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


def _numbers(words: str) -> tuple[int, ...]:
    return tuple(int(word) for word in words.split())


def _games() -> tuple[Environment, ...]:
    published: dict[str, list[PublishedScore]] = defaultdict(list)
    for row in (*_rows("atari_scores.csv"), *_rows("atari_a3c_and_noop_scores.csv")):
        published[row["game"]].append(
            PublishedScore(row["label"], float(row["score"]), row["protocol"], _source(row))
        )
    hidden = {row["game"]: float(row["hidden_share"]) for row in _rows("atari_crop.csv")}
    return tuple(
        Environment(
            id=f"ALE/{row['game']}-v5",
            title=row["title"],
            family="atari",
            summary="Atari 2600 game; 84×84 luminance, four frames stacked.",
            observation="pixels",
            config=AtariConfig,
            protocols=ATARI_PROTOCOLS,
            frames_per_agent_step=4,
            action_names=tuple(row["actions"].split()),
            observation_shape=(84, 84, 4),
            memory_bytes=2 * 2**20,
            published=tuple(published[row["game"]]),
            crop_hides=hidden.get(row["game"]),
            allowed={"mode": _numbers(row["modes"]), "difficulty": _numbers(row["difficulties"])},
        )
        for row in _rows("atari_games.csv")
    )


ATARI: tuple[Environment, ...] = _games()

ROM_MD5: dict[str, str] = {f"ALE/{row['game']}-v5": row["rom_md5"] for row in _rows("atari_games.csv")}
"""MD5 of each game's ROM, by environment: ale-py accepts no other."""
ROM_SHA256: dict[str, str] = {f"ALE/{row['game']}-v5": row["rom_sha256"] for row in _rows("atari_games.csv")}
"""SHA-256 of the same ROM."""
