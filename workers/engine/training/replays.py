"""The replays that an attempt saves.

Apart from `loop`, which saves training episodes, because `scoring` saves those of evaluations.
"""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Literal

from backend.specs.events import EpisodeEvent
from backend.specs.run import RunSpec
from workers.engine.methods.base import EpisodeEnd
from workers.engine.training.journal import Counters, Journal

REPLAY_INTERVAL_S = 20.0
"""Minimum training time between two saved training episodes, unless one is the best recorded so far."""
MIN_REPLAY_INTERVAL_S = 1.0
"""Minimum training time between two best episodes; the later one is saved after it."""


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


class TrainingReplays:
    """Selects the recorded training episodes to save: one every `REPLAY_INTERVAL_S`, and each new best.

    A best episode that comes too soon after another is postponed.
    """

    def __init__(self, replays: Replays, journal: Journal) -> None:
        self._replays = replays
        self._journal = journal
        self.best_saved: float | None = None
        """Return of the best episode that was saved."""
        self._pending_best: tuple[EpisodeEnd, Counters] | None = None
        self._saved_at_s = -REPLAY_INTERVAL_S

    def restore(self, best_saved: float | None) -> None:
        """Continue after a checkpoint; the journal's counters are restored already."""
        self.best_saved = best_saved
        self._saved_at_s = self._journal.counters.wall_time_s

    def select(self, spec: RunSpec, episode: EpisodeEnd, action_names: tuple[str, ...]) -> None:
        """Save the recorded episode that ends now, or postpone it, if it is selected."""
        counters = self._journal.counters
        best = self._pending_best[0].episode_return if self._pending_best else self.best_saved
        if best is None or episode.episode_return > best:
            self._pending_best = (episode, replace(counters))
        since_s = counters.wall_time_s - self._saved_at_s
        if self._pending_best is not None and since_s >= MIN_REPLAY_INTERVAL_S:
            self.save_best(spec, action_names)
        elif since_s >= REPLAY_INTERVAL_S:
            self._save(spec, episode, action_names, counters)

    def save_best(self, spec: RunSpec, action_names: tuple[str, ...]) -> None:
        """Save the postponed best episode, if there is one."""
        if self._pending_best is not None:
            (episode, counters), self._pending_best = self._pending_best, None
            self.best_saved = episode.episode_return
            self._save(spec, episode, action_names, counters)

    def _save(
        self, spec: RunSpec, episode: EpisodeEnd, action_names: tuple[str, ...], counters: Counters
    ) -> None:
        self._saved_at_s = self._journal.counters.wall_time_s
        self._replays.save(spec, episode, action_names, counters=counters)
