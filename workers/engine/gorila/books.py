"""What all parts of a Gorila run did, as the engine hears it, and the series that are told of it."""

from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np

from backend.specs.algorithms.gorila import GorilaConfig
from workers.engine.gorila.hosts import ShardReport, WorkReport
from workers.engine.gorila.parameters import Version
from workers.engine.learner import Advance

EDGES = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
"""Of the staleness histogram's bins; the last one is open."""
BINS = [
    *(str(low) if high == low + 1 else f"{low}-{high - 1}" for low, high in pairwise(EDGES)),
    f"{EDGES[-1]}+",
]


class Books:
    """Totals of the run, and what came since `take`."""

    def __init__(self) -> None:
        self.agent_steps = 0
        self.updates = 0
        """Of theta+: the most that a shard has behind it."""
        self.episodes_begun: dict[int, int] = {}
        """By each actor."""
        self._episodes: defaultdict[int, int] = defaultdict(int)
        self._stale = 0
        self._outliers = 0
        self._lost_pushes = 0
        self._detours = 0
        self._lost_chunks = 0
        self._lost_updates = 0
        self._seen: dict[int, Version] = {}
        self._ended: dict[int, Version] = {}
        """Of each shard's last life, the newest version that anyone saw, or the one it went back to."""
        self._told_updates = 0
        self._fresh()

    def _fresh(self) -> None:
        self._advance = Advance(0, 0, 0)
        self._sums: defaultdict[str, float] = defaultdict(float)
        self._gradients = 0
        self._counts: defaultdict[str, float] = defaultdict(float)
        self._staleness: list[int] = []

    def left(self, bound: int | None) -> int:
        """Decisions until the run's bound."""
        return 2**62 if bound is None else max(bound - self.agent_steps, 0)

    def hear_work(self, actors: list[int], report: WorkReport) -> None:
        """Of a process of actors and learners."""
        advance = self._advance
        advance.agent_steps += report.agent_steps
        self.agent_steps += report.agent_steps
        advance.frames += report.frames
        advance.episodes += report.episodes
        advance.pictures += report.pictures
        for metric, total in report.sums.items():
            self._sums[metric] += total
        self._gradients += report.gradients
        self._outliers += report.outliers
        self._lost_pushes += report.lost_pushes
        self._detours += report.detours
        self._lost_chunks += report.lost_chunks
        for episode in report.episodes:
            self._episodes[int(episode.source.removeprefix("actor "))] += 1
        self.episodes_begun |= report.episodes_begun
        if report.epsilon is not None:
            advance.internals["exploration/epsilon"] = report.epsilon
        for k in actors:
            of = advance.of_sources.setdefault(f"actor {k}", {})
            of["gorila/version_seen"] = report.updates_seen
            of["gorila/episodes"] = self._episodes[k]
        self.hear_fills(report.fills)
        self._see(report.versions)

    def hear_shards(self, report: ShardReport) -> None:
        """Of a process of parameter shards."""
        for books in report.books.values():
            self._counts["pushes"] += len(books.staleness)
            self._counts["pulls"] += books.pulls
            self._counts["push_bytes"] += books.push_bytes
            self._counts["pull_bytes"] += books.pull_bytes
            self._stale += books.discarded
            self._staleness += books.staleness
        for k, version in report.versions.items():
            self._advance.of_sources.setdefault(f"shard {k}", {})["gorila/shard_updates"] = version.updates
        self._see(report.versions)

    def hear_fills(self, fills: dict[int, float]) -> None:
        """Of replay shards."""
        for k, fill in fills.items():
            self._advance.of_sources.setdefault(f"replay {k}", {})["gorila/replay_fill"] = fill

    def begin_life(self, k: int, version: Version) -> int:
        """A shard went back to this version; how many updates, that anyone had seen, are lost by it."""
        before = self._seen.get(k)
        self._seen[k] = version
        if before is None:
            return 0
        lost = max(before.updates - version.updates, 0)
        self._lost_updates += lost
        self._ended[k] = Version(before.life, max(before.updates, version.updates))
        return lost

    def warn(self, message: str) -> None:
        """For the run's log."""
        self._advance.warnings.append(message)

    def take(self, passed_s: float, config: GorilaConfig) -> Advance:
        """What was done since the last time, in so many seconds."""
        advance = self._advance
        advance.updates = self.updates - self._told_updates
        self._told_updates = self.updates
        told = advance.internals
        told |= {metric: total / self._gradients for metric, total in self._sums.items()}
        told["speed/updates_per_s"] = advance.updates / passed_s
        for name in ("pushes", "pulls", "push_bytes", "pull_bytes"):
            told[f"gorila/{name}_per_s"] = self._counts[name] / passed_s
        told["gorila/stale_discards"] = self._stale
        told["gorila/outlier_discards"] = self._outliers
        told["gorila/lost_pushes"] = self._lost_pushes
        told["gorila/lost_updates"] = self._lost_updates
        told["gorila/lost_chunks"] = self._lost_chunks
        told["gorila/replay_detours"] = self._detours
        if self._gradients:
            told["optim/learning_rate"] = config.learning_rate
        if self._staleness:
            told["gorila/gradient_staleness"] = float(np.mean(self._staleness))
            told["gorila/gradient_staleness_max"] = float(max(self._staleness))
            places = np.searchsorted(EDGES, self._staleness, "right") - 1
            shares = np.bincount(places, minlength=len(EDGES)) / len(self._staleness)
            for name, share in zip(BINS, shares.tolist(), strict=True):
                advance.of_sources.setdefault(name, {})["gorila/gradient_staleness_share"] = share
        self._fresh()
        return advance

    def state(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "agent_steps": self.agent_steps,
            "episodes_begun": {str(k): n for k, n in self.episodes_begun.items()},
            "episodes": {str(k): n for k, n in self._episodes.items()},
        }

    def restore(self, state: dict[str, Any], updates: int) -> None:
        """Go on from `state`, with so many updates of theta+."""
        self.agent_steps = state["agent_steps"]
        self.episodes_begun = {int(k): n for k, n in state["episodes_begun"].items()}
        self._episodes.update({int(k): n for k, n in state["episodes"].items()})
        self.updates = self._told_updates = updates

    def _see(self, versions: dict[int, Version]) -> None:
        for k, version in versions.items():
            known = self._seen.get(k, version)
            if version.life < known.life:
                self._hear_of_the_dead(k, version)
                continue
            self._seen[k] = max(version, known)
            self.updates = max(self.updates, version.updates)

    def _hear_of_the_dead(self, k: int, version: Version) -> None:
        """Someone had seen more updates of a shard's last life than was known when it ended."""
        ended = self._ended.get(k)
        if ended is not None and version.life == ended.life and version.updates > ended.updates:
            self._lost_updates += version.updates - ended.updates
            self._ended[k] = version
