"""The replays that an attempt saves."""

import hashlib
from pathlib import Path
from typing import Literal

from backend.specs.events import EpisodeEvent
from backend.specs.run import RunSpec
from workers.engine.methods.base import EpisodeEnd
from workers.engine.training.journal import Counters, Journal


class Replays:
    """Writes replay files and emits an event for each."""

    def __init__(self, folder: Path, attempt: int, journal: Journal) -> None:
        self._folder = folder
        self._attempt = attempt
        self._journal = journal

    def save(
        self,
        spec: RunSpec,
        episode: EpisodeEnd,
        action_names: tuple[str, ...],
        protocol: str | None = None,
        counters: Counters | None = None,
    ) -> None:
        """Write a recorded episode and emit its event.

        Args:
            spec: the run's specification.
            episode: the episode, with its recording.
            action_names: names of the actions, or of the dimensions of one.
            protocol: protocol of the evaluation that the episode was part of; None: a training episode.
            counters: counters at the episode's end; default: the current ones.
        """
        assert episode.recording is not None
        counters = counters or self._journal.counters
        kind: Literal["training", "evaluation"] = "training" if protocol is None else "evaluation"
        # Several episodes may end at one agent step.
        name = f"a{self._attempt}-{kind}-s{counters.agent_steps:012d}-e{counters.episodes}.npz"
        episode.recording.save(
            self._folder / name,
            seed=episode.seed,
            protocol=protocol,
            frames_per_step=getattr(spec.environment_config, "frame_skip", 1),
            action_names=action_names,
        )
        self._journal.emit(
            EpisodeEvent(
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
                replay_sha256=hashlib.sha256((self._folder / name).read_bytes()).hexdigest(),
            )
        )
