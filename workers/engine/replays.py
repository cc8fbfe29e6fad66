"""The replays an attempt keeps."""

from pathlib import Path
from typing import Literal

from backend.specs.events import Episode
from backend.specs.run import RunSpec
from workers.engine.journal import Journal
from workers.engine.learner import EpisodeEnd
from workers.engine.points import Counters


class Replays:
    """Files of episodes, each told of as it is written."""

    def __init__(self, folder: Path, attempt: int, journal: Journal) -> None:
        self._folder = folder
        self._attempt = attempt
        self._journal = journal

    def keep(
        self,
        spec: RunSpec,
        episode: EpisodeEnd,
        action_names: tuple[str, ...],
        kind: Literal["training", "evaluation"],
        counters: Counters | None = None,
    ) -> None:
        """Write a recorded episode, and say so; `counters` are those it ended at, if not the present ones."""
        assert episode.recording is not None
        counters = counters or self._journal.counters
        # Several episodes may have ended at one agent step.
        name = f"a{self._attempt}-{kind}-s{counters.agent_steps:012d}-e{counters.episodes}.npz"
        episode.recording.save(
            self._folder / name,
            seed=episode.seed,
            evaluation=kind == "evaluation",
            frames_per_step=getattr(spec.environment_config, "frame_skip", 1),
            action_names=action_names,
        )
        self._journal.say(
            Episode(
                agent_steps=counters.agent_steps,
                frames=counters.frames,
                wall_time_s=counters.wall_time_s,
                kind=kind,
                source=episode.source,
                seed=episode.seed,
                episode_return=episode.episode_return,
                length_steps=episode.length_steps,
                length_frames=episode.length_frames,
                replay=name,
            )
        )
