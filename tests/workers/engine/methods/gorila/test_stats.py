"""Totals of a Gorila run."""

from collections import defaultdict

from backend.specs.algorithms.gorila import GorilaConfig
from workers.engine.methods.gorila.parameters import ShardStats, Version
from workers.engine.methods.gorila.shards import ShardReport
from workers.engine.methods.gorila.stats import RunStats
from workers.engine.methods.gorila.worker import WorkReport

CONFIG = GorilaConfig(network="mlp")


def test_take_returns_no_metrics_before_the_first_decision_after_a_restore() -> None:
    stats = RunStats()
    assert (stats.agent_steps, stats.updates) == (0, 0)
    stats.restore({"agent_steps": 600, "episodes_begun": {}, "episodes": {}}, updates=50)
    stats.warn("resumed")
    stats.on_shard_report(ShardReport(1, {0: Version(1, 50)}, {0: ShardStats(pulls=2)}))
    stats.on_work_report([0], WorkReport())
    waiting = stats.take(0.25, CONFIG)
    assert (waiting.metrics, waiting.metrics_by_source, waiting.warnings) == ({}, {}, ["resumed"])
    stats.on_work_report([0], WorkReport(agent_steps=4, frames=4, epsilon=0.5))
    first = stats.take(0.25, CONFIG)
    assert first.metrics["exploration/epsilon"] == 0.5
    assert "gorila/version_seen" in first.metrics_by_source["actor 0"]
    assert stats.agent_steps == 604
    assert "gorila/stale_discards" in stats.take(0.25, CONFIG).metrics


def test_state_has_the_agent_steps_that_were_taken() -> None:
    stats = RunStats()
    stats.on_work_report([0], WorkReport(agent_steps=900))
    stats.take(0.25, CONFIG)
    stats.on_work_report([0], WorkReport(agent_steps=100))  # received while the processes are paused
    resumed = RunStats()
    resumed.restore(stats.state(), updates=0)
    assert (stats.left(1_000), resumed.left(1_000)) == (0, 100), "else nothing would reach the limit"


def test_means_of_reports_received_in_a_pause_are_left_to_the_next_take() -> None:
    stats = RunStats()
    for loss, versions in ((2.0, {0: Version(1, 10)}), (4.0, {0: Version(1, 25)})):
        sums = defaultdict(float, {"loss/td": loss})
        stats.on_work_report([0], WorkReport(agent_steps=8, gradients=1, sums=sums, versions=versions))
        settled = stats.take_counts()
        assert settled.agent_steps == 8
        assert "loss/td" not in settled.metrics
    assert settled.updates == 15
    result = stats.take(0.5, CONFIG)
    assert (result.agent_steps, result.updates, result.metrics["loss/td"]) == (0, 0, 3.0)
    assert result.metrics["speed/updates_per_s"] == 0.0


def test_decisions_are_left_up_to_the_bound_and_always_without_one() -> None:
    stats = RunStats()
    stats.on_work_report([0], WorkReport(agent_steps=600))
    assert (stats.left(1_000), stats.left(600), stats.left(500)) == (400, 0, 0)
    assert stats.left(None) > 10**15, "more than any run takes"


def test_updates_reported_after_a_restore_count_as_lost_once() -> None:
    stats = RunStats()
    stats.on_work_report([0], WorkReport(agent_steps=1, versions={0: Version(1, 30)}))
    assert stats.on_shard_restored(0, Version(2, 20)) == 10
    stats.on_work_report([0], WorkReport(versions={0: Version(1, 34)}))  # of the previous incarnation
    stats.on_work_report([0], WorkReport(versions={0: Version(1, 33)}))
    result = stats.take(1.0, CONFIG)
    assert result.metrics["gorila/lost_updates"] == 14
    assert result.updates == 30


def test_metrics_are_totals_means_and_rates_of_all_reports() -> None:
    stats = RunStats()
    for n in (1, 2):
        report = WorkReport(
            agent_steps=8 * n,
            frames=32 * n,
            gradients=2 * n,
            outliers=n,
            lost_pushes=2 * n,
            detours=3 * n,
            lost_chunks=4 * n,
            sums=defaultdict(float, {"loss/td": 3.0 * n, "value/max_q": 2.0 * n}),
        )
        stats.on_work_report([0], report)
    shards = {
        0: ShardStats(discarded=1, pulls=3, push_bytes=100, pull_bytes=200, staleness=[0, 1, 5]),
        1: ShardStats(discarded=2, pulls=5, push_bytes=50, pull_bytes=20, staleness=[600]),
    }
    stats.on_shard_report(ShardReport(1, {0: Version(1, 6), 1: Version(1, 4)}, shards))
    result = stats.take(0.5, CONFIG)
    assert (result.agent_steps, result.frames, result.updates) == (24, 96, 6)
    assert (stats.agent_steps, stats.updates) == (24, 6)
    assert result.metrics == {
        "loss/td": 9.0 / 6,
        "value/max_q": 6.0 / 3,
        "speed/updates_per_s": 12.0,
        "gorila/pushes_per_s": 8.0,
        "gorila/pulls_per_s": 16.0,
        "gorila/push_bytes_per_s": 300.0,
        "gorila/pull_bytes_per_s": 440.0,
        "gorila/stale_discards": 3,
        "gorila/outlier_discards": 3,
        "gorila/lost_pushes": 6,
        "gorila/lost_updates": 0,
        "gorila/lost_chunks": 12,
        "gorila/replay_detours": 9,
        "optim/learning_rate": CONFIG.learning_rate,
        "gorila/gradient_staleness": 606 / 4,
        "gorila/gradient_staleness_max": 600.0,
    }
    shares = {
        name: metrics["gorila/gradient_staleness_share"]
        for name, metrics in result.metrics_by_source.items()
        if "gorila/gradient_staleness_share" in metrics
    }
    assert {name: share for name, share in shares.items() if share} == {
        "0": 0.25,
        "1": 0.25,
        "4-7": 0.25,
        "512+": 0.25,
    }
    updates = {
        name: metrics.get("gorila/shard_updates") for name, metrics in result.metrics_by_source.items()
    }
    assert (updates["shard 0"], updates["shard 1"]) == (6, 4)
    # Counts of discarded gradients are totals of the run, the others of each report.
    stats.on_work_report([0], WorkReport(agent_steps=1, outliers=1))
    later = stats.take(0.5, CONFIG)
    assert (later.agent_steps, later.updates) == (1, 0)
    assert later.metrics["gorila/outlier_discards"] == 4
    assert later.metrics["gorila/pushes_per_s"] == 0
    assert "loss/td" not in later.metrics
