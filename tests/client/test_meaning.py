"""Imported runs of other libraries have scores, step units, configs and seeds; an import can be corrected."""

import json
from pathlib import Path
from typing import Any

import pytest

from callboard.imports.log import Log
from callboard.imports.meaning import interpret
from tests.client.support import Target
from tests.client.test_imports import events_file, imported, rows

pytestmark = pytest.mark.service


def log_of(folder: Path, tags: dict[str, list[tuple[int, float]]], name: str | None = None) -> None:
    for at, (tag, points) in enumerate(tags.items()):
        events_file(folder, 1e9 + 100 * at, points, tag=tag)


def points(n: int, factor: int, slope: float) -> list[tuple[int, float]]:
    return [(at * factor, at * slope) for at in range(1, n + 1)]


LIBRARIES: dict[str, tuple[dict[str, list[tuple[int, float]]], float]] = {
    "rl_games": (
        {
            "rewards/step": points(9, 65_536, 2.0),
            "rewards/iter": points(9, 1, 2.0),
            "rewards/time": points(9, 12, 2.0),
            "episode_lengths/step": points(9, 65_536, 1.0),
        },
        18.0,
    ),
    "sb3": ({"rollout/ep_rew_mean": points(9, 2048, 3.0), "rollout/ep_len_mean": points(9, 2048, 1.0)}, 27.0),
    "skrl": (
        {
            "Reward / Total reward (max)": points(9, 100, 4.0),
            "Reward / Total reward (mean)": points(9, 100, 3.0),
        },
        27.0,
    ),
    "mlagents": ({"Environment/Cumulative Reward": points(9, 12_000, 1.5)}, 13.5),
    "pfrl": ({"eval/mean": points(9, 500, 1.0), "agent/average_q": points(9, 500, 1.0)}, 9.0),
    "cleanrl": ({"charts/episodic_return": points(9, 500, 1.0)}, 5.0),
}


def test_event_files_of_known_libraries_have_a_score_in_agent_steps(target: Target, tmp_path: Path) -> None:
    for library, (tags, _) in LIBRARIES.items():
        log_of(tmp_path / library, tags)
    done = imported("tensorboard", tmp_path)
    assert done.exit_code == 0, done.output
    assert "no score" not in done.output
    by_name = {run["name"]: run for run in target.runs()}
    assert {name: run["score"] for name, run in by_name.items()} == {
        name: score for name, (_, score) in LIBRARIES.items()
    }
    assert {run["step_unit"] for run in by_name.values()} == {"agent_steps"}
    assert by_name["rl_games"]["agent_steps"] == 9 * 65_536
    stored = rows(target, by_name["rl_games"]["id"])
    assert stored == LIBRARIES["rl_games"][0], "the series of iterations and seconds are kept as they are"


RSL_RL = {
    "Train/mean_reward": points(5, 1, 2.0),
    "Train/mean_episode_length": points(5, 1, 9.0),
    "Train/mean_reward/time": points(5, 3, 2.0),
    "Perf/collection time": points(5, 1, 0.5),
}


def test_iterations_become_agent_steps_with_a_factor_and_the_import_replaces_the_first(
    target: Target, tmp_path: Path
) -> None:
    log_of(tmp_path / "go2", RSL_RL)
    assert "no score" not in imported("tensorboard", tmp_path / "go2").output
    [first] = target.runs()
    assert (first["step_unit"], first["score"], first["agent_steps"]) == ("iterations", 10.0, 5)
    corrected = imported("tensorboard", tmp_path / "go2", "--step", "98304", "--environment", "Go2-v0")
    assert "instead of the earlier import" in corrected.output, corrected.output
    [second] = target.runs()
    assert second["id"] != first["id"]
    assert (second["step_unit"], second["environment"]) == ("agent_steps", "Go2-v0")
    assert rows(target, second["id"])["Train/mean_reward"] == points(5, 98_304, 2.0)
    assert rows(target, second["id"])["Train/mean_reward/time"] == points(5, 3, 2.0)
    units = target.client.get(f"/api/v1/runs/{second['id']}/series").json()["items"]
    assert {row["metric"]: row["step_unit"] for row in units} == dict.fromkeys(RSL_RL, "agent_steps") | {
        "Train/mean_reward/time": "seconds"
    }
    assert "unchanged" in imported("tensorboard", tmp_path / "go2").output, "its options still apply"
    again = imported("tensorboard", tmp_path / "go2", "--step", "98304", "--environment", "Go2-v0")
    assert "unchanged" in again.output
    assert [run["id"] for run in target.runs()] == [second["id"]]


def test_log_without_a_known_return_names_what_could_be_it(target: Target, tmp_path: Path) -> None:
    log_of(tmp_path / "own", {"my/return mean": points(3, 10, 1.0), "my/loss": points(3, 10, 1.0)})
    done = imported("tensorboard", tmp_path / "own")
    assert '"my/return mean"' in done.output
    assert '"my/loss"' not in done.output
    done = imported("tensorboard", tmp_path / "own", "--metric", "my/return mean")
    assert "no score" not in done.output
    [run] = target.runs()
    assert (run["return_metric"], run["score"]) == ("my/return mean", 2.0)
    done = imported("tensorboard", tmp_path / "own", "--metric", "my/return mean=rollout/episode_return")
    [run] = target.runs()
    assert (run["return_metric"], run["episodes"]) == ("rollout/episode_return", 3)


@pytest.mark.parametrize("prefix", ["ray/tune/", ""])
def test_iterations_of_rllib_are_replaced_by_the_agent_steps_that_it_reports(
    target: Target, tmp_path: Path, prefix: str
) -> None:
    folder = tmp_path / "PPO_CartPole-v1_d3f0a_00000"
    log_of(
        folder,
        {
            f"{prefix}training_iteration": points(4, 1, 1.0),
            f"{prefix}timesteps_total": points(4, 1, 4000.0),
            f"{prefix}env_runners/episode_return_mean": points(4, 1, 20.0),
            f"{prefix}time_total_s": points(3, 1, 3.5),
        },
    )
    params: dict[str, Any] = {
        "env": "CartPole-v1",
        "lr": 0.0001,
        "model": {"fcnet_hiddens": [64, 64]},
        "seed": 3,
    }
    (folder / "params.json").write_text(json.dumps(params))
    done = imported("tensorboard", tmp_path)
    assert done.exit_code == 0, done.output
    [run] = target.runs()
    assert (run["environment"], run["algorithm"], run["seed"]) == ("CartPole-v1", "PPO", 3)
    assert run["spec"]["config"]["model.fcnet_hiddens"] == [64, 64]
    assert (run["step_unit"], run["score"], run["agent_steps"]) == ("agent_steps", 80.0, 16_000)
    stored = rows(target, run["id"])
    assert stored[f"{prefix}env_runners/episode_return_mean"] == [
        (4000 * at, 20.0 * at) for at in range(1, 5)
    ]


def test_tables_of_ray_tune_have_the_settings_and_algorithm_of_their_folder(
    target: Target, tmp_path: Path
) -> None:
    folder = tmp_path / "PPO_CartPole-v1_d3f0a_00000"
    folder.mkdir()
    (folder / "params.json").write_text(
        json.dumps({"env": "CartPole-v1", "model": {"fcnet_hiddens": [64]}, "seed": 3})
    )
    (folder / "progress.csv").write_text(
        "training_iteration,num_env_steps_sampled_lifetime,env_runners/episode_return_mean\n1,2000,20\n2,4000,30\n"
    )
    row = {"training_iteration": 1, "timesteps_total": 4000, "episode_reward_mean": 20.0}
    config = {"env": "CartPole-v1", "model": {"fcnet_hiddens": [64]}, "seed": 3}
    (folder / "result.json").write_text(json.dumps(row | {"config": config}))
    for command, name in (("csv", "progress.csv"), ("jsonl", "result.json")):
        done = imported(command, folder / name)
        assert done.exit_code == 0, done.output
    (tmp_path / "experiment_state.json").write_text(json.dumps({"checkpoints": [], "stats": {}}, indent=2))
    (folder / "checkpoint_000000").mkdir()
    (folder / "checkpoint_000000" / "rllib_checkpoint.json").write_text('{"type": "Algorithm"}')
    done = imported("jsonl", tmp_path)
    assert done.exit_code == 0, done.output
    assert "files of one JSON object that is no row (3)" in done.output
    runs = target.runs()
    assert len(runs) == 2
    for run in runs:
        assert (run["environment"], run["algorithm"], run["seed"]) == ("CartPole-v1", "PPO", 3)
        assert run["spec"]["config"] == {"env": "CartPole-v1", "model.fcnet_hiddens": [64], "seed": 3}
        assert (run["step_unit"], run["agent_steps"]) == ("agent_steps", 4000)


@pytest.mark.parametrize(
    ("tags", "unit", "agent_steps"),
    [
        ({"num_env_steps_sampled_lifetime": 2000.0}, "agent_steps", 8000),
        ({"num_env_steps_sampled_lifetime": 2000.0, "timesteps_total": 0.0}, "agent_steps", 8000),
        ({"num_env_steps_sampled_lifetime": 2000.0, "timers/training_iteration": 2.5}, "agent_steps", 8000),
        ({"num_env_steps_sampled_lifetime": 4000.0, "timesteps_total": 1.0}, "agent_steps", 4),
        ({"loss": 1.0}, "iterations", 4),
    ],
)
def test_event_files_of_ray_tune_count_iterations_unless_it_knows_the_total_of_steps(
    tags: dict[str, float], unit: str, agent_steps: int
) -> None:
    # Its logger leaves `training_iteration` out; its step is `timesteps_total`, else the iteration.
    log = Log("a", "a")
    for at in range(1, 5):
        log.add("ray/tune/iterations_since_restore", at, 0.0, at)
        for tag, slope in tags.items():
            log.add(f"ray/tune/{tag}", at, 0.0, slope * at)
    interpret(log)
    assert log.step_unit in ({unit, None} if unit == "agent_steps" else {unit})
    assert {column.agent_steps[-1] for column in log.series.values()} == {agent_steps}


def test_timer_of_rllib_is_not_taken_for_its_iteration() -> None:
    log = Log("a", "a")
    for at in range(1, 5):
        log.add("timers/training_iteration", at, 0.0, 2.5)
        log.add("training_iteration", at, 0.0, at)
        log.add("timesteps_total", at, 0.0, 4000.0 * at)
    interpret(log)
    assert {column.agent_steps[-1] for column in log.series.values()} == {16_000}


def test_factor_of_an_option_wins_over_the_agent_steps_that_rllib_reports() -> None:
    log = Log("a", "a")
    for at in range(1, 4):
        log.add("training_iteration", at, 0.0, at)
        log.add("timesteps_total", at, 0.0, 4000.0 * at)
    interpret(log, step_factor=256)
    assert log.step_unit == "agent_steps"
    assert [list(column.agent_steps) for column in log.series.values()] == [[256, 512, 768]] * 2


def test_metric_names_apply_in_any_order_and_what_cannot_apply_is_counted() -> None:
    log = Log("a", "a")
    for metric, value in {"a": 1.0, "b": 2.0, "c=d": 3.0}.items():
        log.add(metric, 1, 0.0, value)
    interpret(log, ("x", "a=b", "new", "z=y", "a=new", "b=b"))
    assert log.return_metric == "new"
    assert {metric: list(column.value) for metric, column in log.series.items()} == {
        "b": [2.0],
        "c=d": [3.0],
        "new": [1.0],
    }
    assert log.not_kept == {
        '--metric "x", since the log has no such metric': 1,
        '--metric "z=y", since the log has no such metric': 1,
        '--metric "a=b", since another metric has this name': 1,
    }
    interpret(log, ("c=d",))
    assert log.return_metric == "c=d"
    interpret(log, ("new", "new=last"))
    assert log.return_metric == "last"


def test_settings_that_a_growing_log_names_later_become_the_config(target: Target, tmp_path: Path) -> None:
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path / "run")) as writer:
        writer.add_scalar("charts/episodic_return", 1.0, 1)
        writer.flush()
        imported("tensorboard", tmp_path / "run")
        writer.add_text("hyperparameters", "|param|value|\n|-|-|\n|lr|0.1|\n|env_id|Later-v0|\n|seed|4|")
        writer.flush()
        done = imported("tensorboard", tmp_path / "run")
    assert done.exit_code == 0, done.output
    [run] = target.runs()
    assert run["spec"]["config"] == {"lr": 0.1, "env_id": "Later-v0", "seed": 4}
    assert (run["environment"], run["seed"]) == ("Later-v0", 4)
    with SummaryWriter(str(tmp_path / "run"), filename_suffix=".later") as writer:
        writer.add_scalar("charts/episodic_return", 2.0, 2)
        writer.add_text("config", "|param|value|\n|-|-|\n|seed|5|")
    imported("tensorboard", tmp_path / "run")
    assert [run["seed"] for run in target.runs()] == [5]


@pytest.mark.long
def test_table_of_iterations_and_its_factor(target: Target, tmp_path: Path) -> None:
    table = tmp_path / "progress.csv"
    table.write_text("training_iteration,episode_reward_mean,loss\n1,10,1\n2,20,0.5\n")
    imported("csv", table, "--environment", "A-v0")
    [run] = target.runs()
    assert (run["step_unit"], run["score"]) == ("iterations", 20.0)
    done = imported("csv", table, "--environment", "B-v0", "--step", "training_iteration*4000")
    assert done.exit_code == 0, done.output
    [run] = target.runs()
    assert (run["step_unit"], run["environment"], run["agent_steps"]) == ("agent_steps", "B-v0", 8000)
    imported("csv", table, "--environment", "B-v0", "--step", "training_iteration*4000", "--metric", "loss")
    [run] = target.runs()
    assert (run["return_metric"], run["score"]) == ("loss", 0.75)
