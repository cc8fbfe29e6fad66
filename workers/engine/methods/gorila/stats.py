"""Totals of a Gorila run, from the reports of its processes, and the metrics derived from them."""

from collections import defaultdict
from typing import Any

import numpy as np

from backend.specs.algorithms.gorila import GorilaConfig
from workers.engine.envs.info import add_totals
from workers.engine.methods.base import MetricsGate, StepResult, histogram
from workers.engine.methods.dqn.actor import recent_decisions
from workers.engine.methods.gorila.parameters import Version
from workers.engine.methods.gorila.shards import ShardReport
from workers.engine.methods.gorila.worker import WorkReport

EDGES = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
"""Lower edges of the bins of the staleness histogram."""


class RunStats:
    """Totals of the run, and the results since `take` or `take_counts`."""

    def __init__(self) -> None:
        self.agent_steps = 0
        self.updates = 0
        """Updates of theta+: the maximum that a shard has applied."""
        self.episodes_begun: dict[int, int] = {}
        """Episodes begun by each actor."""
        self._episodes: defaultdict[int, int] = defaultdict(int)
        self._stale = 0
        self._outliers = 0
        self._lost_pushes = 0
        self._detours = 0
        self._lost_chunks = 0
        self._lost_updates = 0
        self._newest: dict[int, Version] = {}
        """Newest version of each shard that any process has reported."""
        self._previous: dict[int, Version] = {}
        """The newest version reported of each shard's previous incarnation, or the one it was restored to."""
        self._reported_updates = 0
        self.recent = recent_decisions()
        """Of all actors."""
        self._gate = MetricsGate()
        self._clear()

    def _clear(self) -> None:
        self._result = StepResult(0, 0, 0)
        self._sums: defaultdict[str, float] = defaultdict(float)
        self._gradients = 0
        self._n_pushed = 0
        self._counts: defaultdict[str, float] = defaultdict(float)
        self._staleness: list[int] = []

    def left(self, bound: int | None) -> int:
        """Decisions left until the run's bound."""
        return 2**62 if bound is None else max(bound - self.agent_steps, 0)

    def on_work_report(self, actors: list[int], report: WorkReport) -> None:
        """Add the report of a process of actors and learners."""
        result = self._result
        result.agent_steps += report.agent_steps
        self.agent_steps += report.agent_steps
        result.frames += report.frames
        result.episodes += report.episodes
        self.recent += report.decisions
        result.live_frames += report.live_frames
        add_totals(result.info, report.info)
        for metric, total in report.sums.items():
            self._sums[metric] += total
        self._gradients += report.gradients
        self._n_pushed += report.gradients - report.outliers
        self._outliers += report.outliers
        self._lost_pushes += report.lost_pushes
        self._detours += report.detours
        self._lost_chunks += report.lost_chunks
        for episode in report.episodes:
            self._episodes[int(episode.source.removeprefix("actor "))] += 1
        self.episodes_begun |= report.episodes_begun
        if report.epsilon is not None:
            result.metrics["exploration/epsilon"] = report.epsilon
        for k in actors:
            metrics = result.metrics_by_source.setdefault(f"actor {k}", {})
            metrics["gorila/version_seen"] = report.replica_updates
            metrics["gorila/episodes"] = self._episodes[k]
        self.on_replay_fills(report.fills)
        self.on_versions(report.versions)

    def on_shard_report(self, report: ShardReport) -> None:
        """Add the report of a process of parameter shards."""
        for stats in report.stats.values():
            self._counts["pushes"] += len(stats.staleness)
            self._counts["pulls"] += stats.pulls
            self._counts["push_bytes"] += stats.push_bytes
            self._counts["pull_bytes"] += stats.pull_bytes
            self._stale += stats.discarded
            self._staleness += stats.staleness
        for k, version in report.versions.items():
            metrics = self._result.metrics_by_source.setdefault(f"shard {k}", {})
            metrics["gorila/shard_updates"] = version.updates
        self.on_versions(report.versions)

    def on_replay_fills(self, fills: dict[int, float]) -> None:
        """Add the fill of replay shards."""
        for k, fill in fills.items():
            self._result.metrics_by_source.setdefault(f"replay {k}", {})["gorila/replay_fill"] = fill

    def on_versions(self, versions: dict[int, Version]) -> None:
        """Add versions of shards."""
        for k, version in versions.items():
            known = self._newest.get(k, version)
            if version.incarnation < known.incarnation:
                self._on_previous_version(k, version)
                continue
            self._newest[k] = max(version, known)
            self.updates = max(self.updates, version.updates)

    def on_shard_restored(self, k: int, version: Version) -> int:
        """Record that a shard was restored to this version; returns how many reported updates are lost."""
        before = self._newest.get(k)
        self._newest[k] = version
        if before is None:
            return 0
        lost = max(before.updates - version.updates, 0)
        self._lost_updates += lost
        self._previous[k] = Version(before.incarnation, max(before.updates, version.updates))
        return lost

    def warn(self, message: str) -> None:
        """Add a warning to the run's log."""
        self._result.warnings.append(message)

    def take(self, passed_s: float, config: GorilaConfig) -> StepResult:
        """The results since the last call; without metrics before the first decision.

        Args:
            passed_s: seconds since then, without pauses.
            config: the run's config.
        """
        result = self.take_counts()
        metrics = result.metrics
        # Outliers have a loss alone.
        metrics |= {
            metric: total / (self._gradients if metric == "loss/td" else self._n_pushed)
            for metric, total in self._sums.items()
        }
        metrics["speed/updates_per_s"] = result.updates / passed_s
        for name in ("pushes", "pulls", "push_bytes", "pull_bytes"):
            metrics[f"gorila/{name}_per_s"] = self._counts[name] / passed_s
        metrics["gorila/stale_discards"] = self._stale
        metrics["gorila/outlier_discards"] = self._outliers
        metrics["gorila/lost_pushes"] = self._lost_pushes
        metrics["gorila/lost_updates"] = self._lost_updates
        metrics["gorila/lost_chunks"] = self._lost_chunks
        metrics["gorila/replay_detours"] = self._detours
        if self._gradients:
            metrics["optim/learning_rate"] = config.learning_rate
        if self._staleness:
            metrics["gorila/gradient_staleness"] = float(np.mean(self._staleness))
            metrics["gorila/gradient_staleness_max"] = float(max(self._staleness))
            for name, fraction in histogram(np.array(self._staleness), EDGES):
                by_bin = result.metrics_by_source.setdefault(name, {})
                by_bin["gorila/gradient_staleness_share"] = fraction
        self._clear()
        return self._gate.pass_on(result)

    def take_counts(self) -> StepResult:
        """The results since the last call of this or `take`; means and rates are left to the next `take`.

        Rates of a pause would be of whole requests, which began before it.
        """
        result, self._result = self._result, StepResult(0, 0, 0)
        result.updates = self.updates - self._reported_updates
        self._reported_updates = self.updates
        return self._gate.pass_on(result)

    def state(self) -> dict[str, Any]:
        """Plain values for `restore`.

        Without the agent steps that `take` has not returned yet: the loop has not counted them, and a resumed
        run would wait at its limit for steps that no process may take.
        """
        return {
            "agent_steps": self.agent_steps - self._result.agent_steps,
            "episodes_begun": {str(k): n for k, n in self.episodes_begun.items()},
            "episodes": {str(k): n for k, n in self._episodes.items()},
        }

    def restore(self, state: dict[str, Any], updates: int) -> None:
        """Continue from `state`, after `updates` updates of theta+."""
        self.agent_steps = state["agent_steps"]
        self.episodes_begun = {int(k): n for k, n in state["episodes_begun"].items()}
        self._episodes.update({int(k): n for k, n in state["episodes"].items()})
        self.updates = self._reported_updates = updates

    def _on_previous_version(self, k: int, version: Version) -> None:
        """Count lost updates that only a late report of a shard's previous incarnation shows."""
        previous = self._previous.get(k)
        if previous is None or version.incarnation != previous.incarnation:
            return
        if version.updates > previous.updates:
            self._lost_updates += version.updates - previous.updates
            self._previous[k] = version
