"""`callboard agents import`: an exported agent as a run, to evaluate, fork and resume."""

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import Result

from backend.coordination.context import Context
from backend.specs.agents import CARD, DESCRIPTION, description_of
from backend.specs.run import RunSpec, parse_run_spec
from callboard_environments.agents import load_exported_agent
from tests.support.rows import agent_card
from tests.support.service import RunningService
from tests.support.waiting import await_worker_threads
from tests.workers.engine.contract_runs import small
from workers.engine.nn.optimizers import FlatParameters
from workers.engine.training.checkpoint import load
from workers.engine.training.evaluation import load_network, network_of
from workers.engine.training.exported_agents import write_safetensors
from workers.engine.training.loop import Training

Callboard = Callable[..., Result]

pytestmark = pytest.mark.service

AGENT_STEPS = 1_000


def _export(spec: RunSpec, folder: Path, **metadata: str) -> Any:
    """Write the folder of an exported agent; return its network."""
    torch.manual_seed(7)
    network = network_of(spec)
    card = agent_card("01JD3QZ6W9K0Y5T8H2V4B7N1XC", agent_steps=AGENT_STEPS, name="of a friend", seed=5)
    about = {DESCRIPTION: description_of(spec), CARD: card.model_dump_json()} | metadata
    write_safetensors(network, folder / "model.safetensors", about)
    return network


@pytest.mark.long
def test_imported_agent_can_be_evaluated_forked_and_resumed(
    callboard: Callboard, sqlite_service: RunningService, tmp_path: Path
) -> None:
    network = _export(small("paac", "CartPole-v1"), tmp_path)
    imported = callboard("agents", "import", str(tmp_path))
    assert imported.exit_code == 0, imported.output
    run_id = imported.output.strip()
    client = sqlite_service.client
    run = client.get(f"/api/v1/runs/{run_id}").json()
    assert (run["state"], run["agent_steps"], run["seed"]) == ("stopped", AGENT_STEPS, 5)
    assert (run["name"], run["tags"]) == ("of a friend (imported)", ["imported"])
    assert run["state_reason"] == f"imported after {AGENT_STEPS:,} agent steps elsewhere"
    [checkpoint] = client.get(f"/api/v1/runs/{run_id}/checkpoints").json()["items"]
    file = tmp_path / checkpoint["file"]
    file.write_bytes(client.get(f"/api/v1/checkpoints/{checkpoint['id']}/file").content)
    stored = load_network(parse_run_spec(run["spec"]), file)
    assert all(map(torch.equal, stored.parameters(), network.parameters()))
    for path, body in (
        ("evaluations", {"episodes": 2}),
        ("fork", {"config": {"learning_rate": 0.01}, "stop": {"agent_steps": 2_000}}),
        ("resume", {"stop": {"agent_steps": 3_000}}),
    ):
        answer = client.post(f"/api/v1/runs/{run_id}/{path}", json=body)
        assert answer.is_success, answer.text


@pytest.mark.long
@pytest.mark.parametrize(
    ("algorithm", "environment"),
    [
        ("paac", "CartPole-v1"),
        ("ppo", "Pendulum-v1"),
        ("paac_q", "CartPole-v1"),
        ("a3c", "Pendulum-v1"),
        ("n_step_q", "CartPole-v1"),
        ("ga3c", "CartPole-v1"),
        ("dqn", "CartPole-v1"),
    ],
)
def test_adopted_agent_trains_on(algorithm: str, environment: str, tmp_path: Path) -> None:
    from workers.engine.training.journal import Counters

    spec = small(algorithm, environment, stop={"agent_steps": AGENT_STEPS})
    theta = FlatParameters(_export(spec, tmp_path)).theta.clone()
    Training(spec, tmp_path).adopt(theta, Counters(AGENT_STEPS, AGENT_STEPS))
    [file] = (tmp_path / "checkpoints").iterdir()
    assert torch.equal(load(file)["learner"]["theta"], theta)
    longer = small(algorithm, environment, stop={"agent_steps": AGENT_STEPS + 400})
    ended = Training(longer, tmp_path, attempt=2, resume=file.name).run()
    assert ended.state == "finished", ended.traceback


def test_folder_that_is_no_agent_is_refused_and_nothing_recorded(
    callboard: Callboard, sqlite_service: RunningService, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    spec = small("paac", "CartPole-v1")
    described = json.loads(description_of(spec))
    cases: tuple[tuple[dict[str, str], str], ...] = (
        ({CARD: "{}"}, f"folder: model.safetensors: {CARD}: "),
        ({CARD: "no JSON"}, f"folder: model.safetensors: {CARD}: "),
        ({DESCRIPTION: json.dumps(described | {"algorithm": "mine"})}, 'unknown algorithm "mine"'),
        (
            {DESCRIPTION: json.dumps(described | {"environment": "Acrobot-v1", "environment_config": {}})},
            "body.linear1.weight is (128, 4), and the network's is (128, 6)",
        ),
    )
    for metadata, message in cases:
        with subtests.test(message):
            _export(spec, tmp_path, **metadata)
            refused = callboard("agents", "import", str(tmp_path))
            assert (refused.exit_code, message in refused.output) == (2, True), refused.output
            assert len(refused.output.splitlines()) == 1
    with subtests.test("no folder"):
        refused = callboard("agents", "import", str(tmp_path / "none"))
        assert "there is no such file" in refused.output
    assert sqlite_service.client.get("/api/v1/runs").json()["items"] == []


@pytest.mark.long
def test_agent_is_exported_by_a_worker_and_loaded(
    callboard: Callboard, sqlite_service: RunningService, tmp_path: Path
) -> None:
    from workers.host_agent import HostAgent

    _export(small("paac", "CartPole-v1"), tmp_path)
    run_id = callboard("agents", "import", str(tmp_path)).output.strip()
    settings = sqlite_service.settings.model_copy(update={"host_name": "a"})
    with closing(Context.from_settings(settings)) as context:
        agent = HostAgent(context)
        agent.start()
        try:
            folder = tmp_path / "out"
            options = ("--checkpoint", "latest", "--licence", "mit", "--output", str(folder))
            exported = callboard("agents", "export", run_id, *options)
        finally:
            agent.stop(8)
            await_worker_threads()
    assert (exported.exit_code, exported.stdout) == (0, f"{folder}\n"), exported.output
    assert "waiting for a worker" in exported.stderr
    loaded = load_exported_agent(folder)
    assert loaded.act([0.0, 0.0, 0.0, 0.0]) in (0, 1)
    refused = callboard("agents", "export", run_id, "--output", str(folder))
    assert refused.exit_code == 2
    assert "evaluate one, or export latest" in refused.output
