"""Exported agents compute what their checkpoints compute, come back, and are refused in one message."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
import yaml
from numpy.typing import NDArray
from torch import Tensor, nn

from backend.specs.agents import DESCRIPTION, AgentCard, description_of
from backend.specs.algorithms import ALGORITHMS
from backend.specs.run import RunSpec, parse_run_spec
from callboard_environments.agents import load_exported_agent
from tests.support.rows import agent_card
from tests.workers.engine.contract_runs import small
from workers.engine.envs import Box, make_env
from workers.engine.nn.optimizers import FlatParameters
from workers.engine.training.checkpoint import save
from workers.engine.training.evaluation import GreedyPolicy, load_policy, network_of
from workers.engine.training.exported_agents import (
    ExportError,
    UnusableWeightsError,
    export_agent,
    read_safetensors,
    write_onnx,
    write_safetensors,
)

ROOT = Path(__file__).parents[4]
CASES: dict[str, dict[str, Any]] = {
    "nips": {"algorithm": "paac", "environment": "ALE/Pong-v5", "config": {"network": "nips"}},
    "lstm": {
        "algorithm": "a3c",
        "environment": "ALE/Breakout-v5",
        "config": {"network": "compact", "recurrent": True},
    },
    "centred": {"algorithm": "paac", "environment": "ALE/Pong-v5", "config": {"centre": True}},
    "q": {"algorithm": "dqn", "environment": "ALE/Breakout-v5"},
    "gaussian": {"algorithm": "a3c", "environment": "HalfCheetah-v5"},
    "diagonal": {"algorithm": "ppo", "environment": "HalfCheetah-v5"},
    "mlp": {"algorithm": "paac", "environment": "CartPole-v1"},
}


def _spec(**request: Any) -> RunSpec:
    return parse_run_spec({"stop": {"agent_steps": 10}} | request)


def _network(spec: RunSpec, seed: int = 0) -> Any:
    """A network that prefers some actions, as a trained one does."""
    torch.manual_seed(seed)
    network = network_of(spec)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "centre" in name:
                parameter.fill_(40.0)
            elif name.startswith(("logits.weight", "mu.weight", "q.weight")):
                parameter.normal_(0.0, 1.0)
            elif not name.startswith("log_sigma"):
                parameter.add_(torch.randn(parameter.shape) * 0.02)
    return network


def _checkpoint(spec: RunSpec, folder: Path, network: nn.Module) -> Path:
    path = folder / "a1-s000000000100.pt"
    save(path, {"learner": {"theta": FlatParameters(network).theta}}, network, spec)
    return path


def _exported(spec: RunSpec, folder: Path, file_format: Any, **card: Any) -> Path:
    folder.mkdir(exist_ok=True)
    checkpoint = _checkpoint(spec, folder, _network(spec))
    described = agent_card("01JD3QZ6W9K0Y5T8H2V4B7N1XC", **card)
    export_agent(spec, checkpoint, described, file_format, folder / "x-agent.zip")
    unpacked: Path = folder / file_format
    with zipfile.ZipFile(folder / "x-agent.zip") as archive:
        archive.extractall(unpacked)
    return unpacked


def _observations(spec: RunSpec, policy: Any, n: int) -> list[tuple[NDArray[Any], bool]]:
    """Observations of episodes that the policy plays, and whether each is the first of one."""
    env = make_env(spec.environment, spec.environment_config)
    observation = np.zeros(env.observation_shape, env.observation_dtype)
    recorded: list[tuple[NDArray[Any], bool]] = []
    is_first, seed = True, 0
    while len(recorded) < n:
        if is_first:
            policy.forget(0)
            env.reset(seed, observation)
            seed += 1
        recorded.append((observation.copy(), is_first))
        action = policy.act(observation[None], np.zeros(1, int))[0][0]
        if isinstance(env.action_space, Box):
            action = env.action_space.clip(np.asarray(action))
        is_first = env.step(action, observation).episode_over
    env.close()
    return recorded


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_onnx_computes_what_the_checkpoint_does_over_recorded_episodes(case: str, tmp_path: Path) -> None:
    import onnxruntime

    spec = _spec(**CASES[case])
    folder = _exported(spec, tmp_path, "onnx")
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md", "config.yml", "model.onnx", "replay.mp4", "results.json",
    ]  # fmt: skip
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    assert json.loads(session.get_modelmeta().custom_metadata_map[DESCRIPTION])["algorithm"] == spec.algorithm
    checkpoint = tmp_path / "a1-s000000000100.pt"
    observations = _observations(spec, load_policy(spec, checkpoint, 1), 10_000)
    policy: Any = load_policy(spec, checkpoint, 0)
    names = [value.name for value in session.get_outputs()]
    sizes = {value.name: value.shape[1] for value in session.get_inputs()[1:]}
    worst, same, memory = 0.0, 0, {}
    for observation, is_first in observations:
        if is_first:
            policy.forget(0)
            memory = {name: np.zeros((1, cells), np.float32) for name, cells in sizes.items()}
        wanted, value = policy.outputs(observation[None], np.zeros(1, int))
        answer = session.run(None, {"observation": observation[None], **memory})
        outputs = dict(zip(names, answer, strict=True))
        memory = {name: outputs[f"next_{name}"] for name in sizes}
        worst = max(worst, float(np.abs(outputs[names[0]] - wanted).max()))
        if "value" in outputs:
            worst = max(worst, float(np.abs(outputs["value"] - value).max()))
        same += int(outputs[names[0]].argmax() == wanted.argmax())
    assert worst < 1e-4
    assert same >= 0.999 * len(observations)


@pytest.mark.parametrize("case", ["mlp", "nips"])
def test_exported_agent_comes_back_with_every_weight(case: str, tmp_path: Path) -> None:
    spec = _spec(**CASES[case])
    folder = _exported(spec, tmp_path, "safetensors", licence="mit")
    read, network = read_safetensors(folder / "model.safetensors")
    assert (read.config, read.environment_config) == (spec.config, spec.environment_config)
    assert all(map(torch.equal, network.parameters(), _network(spec).parameters()))
    agent = load_exported_agent(folder, greedy=True)
    env = agent.make_env()
    observation, _ = env.reset(seed=0)
    checkpoint = GreedyPolicy(load_policy(spec, tmp_path / "a1-s000000000100.pt", 0))
    for _ in range(20):
        action = agent.act(observation)
        assert action == checkpoint.act(observation[None], np.zeros(1, int))[0][0]
        observation, *_ = env.step(action)
    env.close()

    _, front, page = (folder / "README.md").read_text("utf-8").split("---\n", 2)
    card = yaml.safe_load(front)
    assert card["license"] == "mit"
    [result] = card["model-index"][0]["results"]
    assert result["dataset"]["name"] == spec.environment
    assert result["metrics"][0]["value"] == "200.00 +/- 10.00"
    assert "| plain | 30 | 0 | 200.00 ± 10.00 | 195.00 [180.00, 210.00] |" in page
    config = yaml.safe_load((folder / "config.yml").read_text("utf-8"))
    assert config["config"] == spec.config.model_dump(mode="json")
    assert json.loads((folder / "results.json").read_text("utf-8"))["mean_reward"] == 200.0
    assert (folder / "replay.mp4").stat().st_size > 1_000


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_network_of_every_algorithm_comes_back(algorithm: str, tmp_path: Path) -> None:
    spec = small(algorithm, "CartPole-v1")
    network = network_of(spec)
    path = tmp_path / "model.safetensors"
    write_safetensors(network, path, {DESCRIPTION: description_of(spec)})
    read, back = read_safetensors(path)
    assert read.config == spec.config
    assert all(map(torch.equal, back.parameters(), network.parameters()))


@pytest.mark.service
@pytest.mark.long
def test_script_with_onnxruntime_and_gymnasium_alone_plays(tmp_path: Path) -> None:
    folder = _exported(_spec(**CASES["mlp"]), tmp_path, "onnx")
    script = (ROOT / "examples/play_onnx.py").read_text("utf-8")
    blocked = "import sys; sys.modules.update(torch=None, callboard=None, backend=None, workers=None)\n"
    command = [sys.executable, "-c", blocked + script, str(folder), "CartPole-v1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("return: ")


def _written(folder: Path, arrays: dict[str, Tensor], metadata: dict[str, str] | None = None) -> Path:
    path = folder / "model.safetensors"
    safetensors.torch.save_file(arrays, path, metadata)
    return path


def test_unusable_weights_are_refused_in_one_message(tmp_path: Path, subtests: pytest.Subtests) -> None:
    spec = _spec(**CASES["mlp"])
    about = {DESCRIPTION: description_of(spec)}
    arrays = {name: p.detach().clone() for name, p in _network(spec).named_parameters()}
    described = json.loads(about[DESCRIPTION])

    def changed(**fields: Any) -> dict[str, str]:
        return {DESCRIPTION: json.dumps(described | fields)}

    nan = arrays["value.bias"] * float("nan")
    cases: list[tuple[dict[str, Tensor], dict[str, str] | None, str]] = [
        (arrays, None, "has no description of its agent"),
        (
            {**arrays, "logits.weight": torch.zeros(3, 128)},
            about,
            r"logits.weight is \(3, 128\), and.*\(2, 128\)",
        ),
        ({n: a for n, a in arrays.items() if n != "value.bias"}, about, r"lacks value.bias \(1,\)"),
        ({**arrays, "more": torch.zeros(1)}, about, "has more, which the network lacks"),
        ({n: a.double() for n, a in arrays.items()}, about, "is of F64, and must be of F32.*; and 5 more"),
        ({**arrays, "value.bias": nan}, about, "value.bias has values that are not finite"),
        (arrays, changed(algorithm="a3x"), 'unknown algorithm "a3x"'),
        (arrays, changed(environment="os:system"), "are not allowed"),
        (arrays, changed(config={"network": "nips"}), "network"),
        (arrays, {DESCRIPTION: "[" * 100_000}, DESCRIPTION),
        (arrays, {DESCRIPTION: "[]"}, "must be an object"),
    ]
    for broken, metadata, message in cases:
        with subtests.test(message):
            path = _written(tmp_path, broken, metadata)
            with pytest.raises(UnusableWeightsError, match=message):
                read_safetensors(path)
    with subtests.test("no safetensors"):
        path.write_bytes(b"\x80\x04\x95")
        with pytest.raises(ValueError, match=r"model.safetensors: is not a file of safetensors"):
            load_exported_agent(tmp_path)
    with subtests.test("no file"), pytest.raises(ValueError, match="there is no such file"):
        load_exported_agent(tmp_path / "elsewhere")


class _MatrixExponential(nn.Module):
    """A layer of a package whose operator ONNX does not have."""

    def forward(self, x: Tensor) -> Tensor:
        squares = x[:, :4, None] * x[:, None, :4]
        result: Tensor = torch.linalg.matrix_exp(squares).flatten(1)[:, :1] + x
        return result


@pytest.mark.long
def test_network_that_onnx_cannot_express_is_refused_in_one_message(tmp_path: Path) -> None:
    spec = _spec(**CASES["mlp"])
    network = _network(spec)
    network.body.append(_MatrixExponential())
    with pytest.raises(ExportError, match=r"paac cannot be exported as ONNX: its network has a layer"):
        write_onnx(network, spec, tmp_path / "model.onnx", {})
    with pytest.raises(ExportError, match="the network is a Linear; only ActorCritic"):
        write_onnx(nn.Linear(4, 2), spec, tmp_path / "model.onnx", {})
    assert not list(tmp_path.iterdir())


def test_convolutions_are_stored_in_the_order_of_their_shape(tmp_path: Path) -> None:
    network = _network(_spec(**CASES["nips"]))
    FlatParameters(network)  # keeps convolutions channels-last
    assert not network.body.conv1.weight.is_contiguous()
    write_safetensors(network, tmp_path / "model.safetensors", {})
    stored = safetensors.torch.load_file(tmp_path / "model.safetensors")
    assert torch.equal(stored["body.conv1.weight"], network.body.conv1.weight)


def test_card_without_scores_has_no_result_and_says_so(tmp_path: Path) -> None:
    from backend.specs.agents import readme, results_json

    spec = _spec(**CASES["mlp"])
    card: AgentCard = agent_card("01JD3QZ6W9K0Y5T8H2V4B7N1XC", scores=[])
    text = readme(card, spec, "onnx", video=False)
    assert "model-index" not in text
    assert "This checkpoint has not been evaluated." in text
    assert json.loads(results_json(card))["mean_reward"] is None
