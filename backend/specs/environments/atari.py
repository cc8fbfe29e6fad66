"""Atari 2600 games, with the papers' settings as defaults (Mnih et al. 2015, 2016; Clemente et al. 2017)."""

import csv
from importlib import resources
from typing import Literal

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
    noop_max: int = setting(
        30,
        ge=0,
        le=200,
        title="No-op starts",
        group="environment",
        unit="frames",
        description="An episode starts with 1 to this many no-op frames; 0 starts at once.",
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
    frame_maximum: Literal["rgb", "luminance"] = setting(
        "luminance",
        title="Maximum of two frames over",
        group="environment",
        description="rgb: the papers' maximum before greyscale. luminance: the maximum after it, "
        "a little faster. Evaluation always uses rgb.",
    )


def _published(row: dict[str, str]) -> tuple[PublishedScore, ...]:
    source = "Nair et al. 2015, appendix, null-op starts"
    return tuple(
        PublishedScore(label=label, score=float(row[label]), protocol="noop_starts", source=source)
        for label in ("random", "human")
        if row[label]
    ) + tuple(
        PublishedScore(
            label=f"PAAC {network}",
            score=float(row[f"paac_{network}"]),
            protocol="noop_starts",
            source="Clemente et al. 2017, table 1, best of three actors",
        )
        for network in ("nips", "nature")
        if row[f"paac_{network}"]
    )


def _games() -> tuple[Environment, ...]:
    text = resources.files("backend.specs.environments").joinpath("atari_games.csv").read_text("utf-8")
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
            published=_published(row),
        )
        for row in csv.DictReader(text.splitlines())
    )


ATARI: tuple[Environment, ...] = _games()
