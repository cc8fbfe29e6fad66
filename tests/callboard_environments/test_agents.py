"""Agents of runs that were really trained act in one's own program."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from typer.testing import CliRunner

import callboard
from backend.specs.run import parse_run_spec
from callboard_cli.main import app
from callboard_environments.agents import Agent, load_agent
from tests.client.support import Target
from workers.engine.envs import make_env
from workers.engine.training.evaluation import load_policy

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.service


def trained(target: Target, folder: Path, *options: str, until: Sequence[int]) -> str:
    """A run that was trained in a terminal, up to each of these agent steps, and then imported; its id."""
    settings = target.service.settings
    local = {
        "CALLBOARD_HOME": str(settings.home_dir),
        "CALLBOARD_DATABASE_URL": settings.database,
        "CALLBOARD_REDIS_URL": settings.redis,
    }
    train = ["train", *options, "--run-directory", str(folder), "--set", "evaluation_episodes=2"]
    for command in [*([*train, "--agent-steps", str(n)] for n in until), ["runs", "import", str(folder)]]:
        done = CliRunner().invoke(app, command, env=local)
        assert done.exit_code == 0, done.output
    return done.output.strip()


def test_agent_acts_as_the_engine_does_with_the_same_checkpoint(target: Target, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    paac = ["--algorithm", "paac", "--environment", "CartPole-v1", "--set", "n_e=4"]
    run_id = trained(target, folder, *paac, until=[500, 1_000])
    scored = target.client.get(f"/api/v1/runs/{run_id}/evaluations").json()["items"]
    best = max(scored, key=lambda evaluation: float(evaluation["mean_return"]))
    observations = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    with callboard.connect() as client:
        run = client.run(run_id)
        agent = load_agent(client, run, checkpoint="best", seed=3)
        assert agent.checkpoint["file"] == best["checkpoint"]
        assert len(scored) == 2
        actions = [agent.act(observation) for observation in observations]
        assert all(type(action) is int for action in actions)
        # The engine's own loading of the run's own file.
        checkpoint = folder / "checkpoints" / best["checkpoint"]
        policy = load_policy(parse_run_spec(run.data["spec"]), checkpoint, seed=3)
        wanted = [int(policy.act(observation[None], np.zeros(1, int))[0][0]) for observation in observations]
        assert actions == wanted
        assert len(set(actions)) == 2

        latest = load_agent(client, run_id, checkpoint="latest", greedy=True)
        assert latest.checkpoint["agent_steps"] == 1_000
        by_id = load_agent(client, run_id, checkpoint=latest.checkpoint["id"], greedy=True, seed=9)
        both = by_id.act(observations)
        assert both.tolist() == [latest.act(observation) for observation in observations]

        env = gymnasium.make("CartPole-v1")
        observation, _ = env.reset(seed=1)
        terminated = truncated = False
        while not (terminated or truncated):
            observation, _, terminated, truncated, _ = env.step(agent.act(observation))
        agent.reset()
        env.close()
        text = (ROOT / "docs/guides/log.md").read_text("utf-8")
        [block] = re.findall(r"## Let a trained agent act\n\n```python\n(.*?)```", text, re.S)
        played: dict[str, Any] = {}
        exec(block, played)
        assert played["episode_over"]

        with pytest.raises(ValueError, match=r"must have the shape \(4,\).*got \(3,\)"):
            agent.act(np.zeros(3))
        with pytest.raises(ValueError, match="must be best, latest or the id"):
            load_agent(client, run_id, checkpoint="newest")


def test_episodes_of_an_agents_environment_are_whole_games() -> None:
    request = {
        "algorithm": "paac",
        "environment": "ALE/Breakout-v5",
        "environment_config": {"life_loss_terminal": True},
        "stop": {"agent_steps": 100},
    }
    spec = parse_run_spec(request)
    of_run = make_env(spec.environment, spec.environment_config)
    env = Agent(spec, None, of_run, {}).make_env()
    env.reset(seed=0)
    terminated = False
    while not terminated:
        *_, terminated, _, _ = env.step(1)  # FIRE serves each ball, which nobody returns
    emulator = env.unwrapped._env.ale  # type: ignore[attr-defined]  # noqa: SLF001
    assert emulator.lives() == 0


@pytest.mark.long
def test_agent_of_a_race_with_opponents_acts_as_its_checkpoint(target: Target, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    a3c = ["--algorithm", "a3c", "--environment", "Racing-Slow-Opponents-v0", "--set", "n_actors=1"]
    run_id = trained(target, folder, *a3c, "--set-environment", "episode_s=2", until=[100])
    with callboard.connect() as client:
        run = client.run(run_id)
        agent = load_agent(client, run, checkpoint="latest", seed=3)
        env = agent.make_env()
        observation, _ = env.reset(seed=5)
        observations = [observation]
        observations += [env.step(agent.act(observations[-1]))[0] for _ in range(10)]
        env.close()
        again = load_agent(client, run, checkpoint="latest", seed=3)
        policy = load_policy(
            parse_run_spec(run.data["spec"]), folder / "checkpoints" / agent.checkpoint["file"], seed=3
        )
        wanted = [int(policy.act(observation[None], np.zeros(1, int))[0][0]) for observation in observations]
        assert [again.act(observation) for observation in observations] == wanted


@pytest.mark.long
def test_agent_with_continuous_actions_and_one_of_pixels_act_in_their_environments(
    target: Target, tmp_path: Path
) -> None:
    cases: list[tuple[list[str], Any]] = [
        (["--algorithm", "a3c", "--environment", "Pendulum-v1", "--set", "n_actors=1"], (1,)),
        (["--algorithm", "paac", "--environment", "Catch-v0", "--set", "n_e=2"], ()),
    ]
    with callboard.connect() as client:
        for n, (options, shape) in enumerate(cases):
            run_id = trained(target, tmp_path / str(n), *options, until=[200])
            agent = load_agent(client, run_id, checkpoint="latest")
            env = agent.make_env()
            observation, _ = env.reset(seed=0)
            for _ in range(5):
                action = agent.act(observation)
                assert np.shape(action) == shape
                assert env.action_space.contains(action)
                observation, _, terminated, truncated, _ = env.step(action)
                if terminated or truncated:
                    break
            env.close()


def test_runs_without_an_agent_are_refused(target: Target) -> None:
    with callboard.init(algorithm="a", environment="e") as run:
        pass
    with callboard.connect() as client:
        assert run.id is not None
        with pytest.raises(ValueError, match="external run"):
            load_agent(client, run.id)
        queued = client.start("paac", "CartPole-v1", stop={"agent_steps": 1_000})
        with pytest.raises(ValueError, match="has no checkpoint"):
            load_agent(client, queued[0])
        queued.stop()
