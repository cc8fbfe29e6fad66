"""Agents outside Callboard: a network's weights as safetensors or ONNX with a model card, and back again.

A file of safetensors holds arrays and text alone: nothing of it is executed. What comes back is checked
against the network that its description asks for before an array is read.
"""

import json
import warnings
import zipfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from backend.specs.agents import (
    CARD,
    DESCRIPTION,
    MAX_WEIGHTS_BYTES,
    WEIGHTS,
    AgentCard,
    AgentFormat,
    ExportedAgent,
    config_yml,
    description_of,
    readme,
    results_json,
)
from backend.specs.problems import InvalidSpec
from backend.specs.run import RunSpec, parse_run_spec
from workers.engine.envs import env_config, make_env
from workers.engine.files import replacing
from workers.engine.methods.base import Policy
from workers.engine.methods.registry import METHODS
from workers.engine.nn.inference import inference_of
from workers.engine.training.evaluation import load_network, network_of
from workers.engine.training.video import VideoFile

VIDEO_S = 60.0
"""Maximum length of the video of an exported agent."""
_DATED = (1980, 1, 1, 0, 0, 0)
_NAMED = 3
"""Maximum number of arrays that a message names."""


class ExportError(Exception):
    """The agent cannot be exported in this format."""


class UnusableWeightsError(ValueError):
    """A file of weights is not that of an agent that this machine can build."""


def export_agent(
    spec: RunSpec, checkpoint: Path, card: AgentCard, file_format: AgentFormat, out: Path
) -> ExportedAgent:
    """Write a folder as a ZIP archive: the network of a checkpoint, its model card, settings, scores, and the
    video of an episode.

    Args:
        spec: the run's specification.
        checkpoint: the checkpoint's file.
        card: what is known of the agent.
        file_format: format of the network's file.
        out: the archive, which is written atomically.

    Raises:
        DamagedCheckpointError: the checkpoint cannot be read.
        ExportError: the network cannot be exported in this format.
        ValueError: the checkpoint belongs to another network.
    """
    network = load_network(spec, checkpoint)
    weights, video = out.with_name(WEIGHTS[file_format]), out.with_name("replay.mp4")
    about = {DESCRIPTION: description_of(spec), CARD: card.model_dump_json()}
    if file_format == "onnx":
        write_onnx(network, spec, weights, about)
    else:
        write_safetensors(network, weights, about)
    policy = METHODS[spec.algorithm].policy(network, torch.device("cpu"), card.seed)
    try:
        no_video = record_video(spec, policy, video, card.seed)
    except Exception as error:  # what draws is another library's; the weights are worth more
        no_video = f"{type(error).__name__}: {error}"
    texts = {
        "README.md": readme(card, spec, file_format, video=no_video is None),
        "config.yml": config_yml(spec, card),
        "results.json": results_json(card),
    }
    with replacing(out) as partial, zipfile.ZipFile(partial, "w") as archive:
        for name, text in texts.items():
            archive.writestr(zipfile.ZipInfo(name, _DATED), text, zipfile.ZIP_DEFLATED)
        for file in (weights, video):
            if file.is_file():
                archive.write(file, file.name)
    return ExportedAgent(n_bytes=weights.stat().st_size, no_video=no_video)


def write_safetensors(network: nn.Module, path: Path, about: Mapping[str, str]) -> None:
    """Write a network's parameters as safetensors, by module path.

    Args:
        network: on the CPU.
        path: the file.
        about: texts of the file's metadata.
    """
    from safetensors.torch import save_file

    # Convolutions are kept channels-last, and safetensors stores what lies in memory.
    arrays = {
        name: parameter.detach().clone(memory_format=torch.contiguous_format)
        for name, parameter in network.named_parameters()
    }
    with replacing(path) as partial:
        save_file(arrays, partial, {"format": "pt", **about})


def read_safetensors(path: Path) -> tuple[RunSpec, nn.Module]:
    """The network of an exported agent, and the specification of which its description is a part.

    Raises:
        UnusableWeightsError: the file is no export of an agent, or its arrays are not those of the agent's
            network; nothing of it was read then.
    """
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise UnusableWeightsError(f"{path.name}: there is no such file; an agent is exported with one")
    if path.stat().st_size > MAX_WEIGHTS_BYTES:
        raise UnusableWeightsError(f"{path.name}: has more than {MAX_WEIGHTS_BYTES:,} bytes")
    try:
        with safe_open(path, "pt") as file:
            spec = _described(path.name, file.metadata() or {})
            network = network_of(spec)
            wanted = dict(network.named_parameters())
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
            has = {name: (tuple(part.get_shape()), part.get_dtype()) for name, part in slices.items()}
            _check_arrays(path.name, spec, {name: tuple(p.shape) for name, p in wanted.items()}, has)
            with torch.no_grad():
                for name, parameter in wanted.items():
                    parameter.copy_(file.get_tensor(name))
    except (SafetensorError, OSError) as error:
        raise UnusableWeightsError(f"{path.name}: is not a file of safetensors: {error}") from None
    bad = [name for name, parameter in wanted.items() if not bool(parameter.isfinite().all())]
    if bad:
        raise UnusableWeightsError(f"{path.name}: {bad[0]} has values that are not finite")
    return spec, network


def _described(name: str, metadata: Mapping[str, str]) -> RunSpec:
    if DESCRIPTION not in metadata:
        raise UnusableWeightsError(
            f"{name}: has no description of its agent ({DESCRIPTION}): Callboard has not exported it"
        )
    try:
        described = json.loads(metadata[DESCRIPTION])
        if not isinstance(described, dict):
            raise ValueError("must be an object")
        return parse_run_spec(described | {"stop": {"agent_steps": 1}})
    except (ValueError, RecursionError, InvalidSpec) as error:
        raise UnusableWeightsError(f"{name}: {DESCRIPTION}: {error}") from None


def _check_arrays(
    file: str,
    spec: RunSpec,
    wanted: Mapping[str, tuple[int, ...]],
    has: Mapping[str, tuple[tuple[int, ...], str]],
) -> None:
    """Check names, shapes and types of arrays.

    Raises:
        UnusableWeightsError: they are not those of the network; the message names the first few.
    """
    problems = [f"lacks {name} {shape}" for name, shape in wanted.items() if name not in has]
    problems += [f"has {name}, which the network lacks" for name in has if name not in wanted]
    for name in wanted.keys() & has.keys():
        shape, dtype = has[name]
        if shape != wanted[name]:
            problems.append(f"{name} is {shape}, and the network's is {wanted[name]}")
        elif dtype != "F32":
            problems.append(f"{name} is of {dtype}, and must be of F32")
    if problems:
        more = f"; and {len(problems) - _NAMED} more" if len(problems) > _NAMED else ""
        raise UnusableWeightsError(
            f"{file}: is not the network of {spec.algorithm} on {spec.environment} with these settings: "
            f"{'; '.join(problems[:_NAMED])}{more}"
        )


def read_card(path: Path) -> AgentCard:
    """What the exporting server knew of the agent in a file that `read_safetensors` accepts.

    Raises:
        UnusableWeightsError: the file does not say.
    """
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        text = (file.metadata() or {}).get(CARD, "")
    try:
        return AgentCard.model_validate_json(text)
    except ValueError as error:
        problem = " ".join(str(error).split())[:300]
        raise UnusableWeightsError(f"{path.name}: {CARD}: {problem}") from None


def write_onnx(network: nn.Module, spec: RunSpec, path: Path, about: Mapping[str, str]) -> None:
    """Write a network as one ONNX file: observations in, what the agent acts by out.

    Args:
        network: on the CPU.
        spec: the run's specification.
        path: the file.
        about: texts of the file's metadata.

    Raises:
        ExportError: it cannot be expressed by operators of ONNX, or this host lacks what that needs.
    """
    try:
        import onnx
        import onnxscript  # noqa: F401 - torch.onnx imports it
    except ImportError:
        raise ExportError("this host cannot export ONNX: pip install 'callboard[onnx]'") from None
    try:
        form = inference_of(network)
    except ValueError as error:
        raise ExportError(f"{spec.algorithm} cannot be exported as ONNX: {error}") from None
    env = make_env(spec.environment, spec.environment_config)
    N = 2  # of one, the exporter would make a constant
    observation = torch.from_numpy(np.zeros((N, *env.observation_shape), env.observation_dtype))
    env.close()
    memory = [torch.zeros(N, cells) for cells in form.memory.values()]
    names = list(form.memory)
    batch = torch.export.Dim("N")
    shapes: tuple[Any, ...] = ({0: batch},)
    if memory:
        shapes = ({0: batch}, tuple({0: batch} for _ in memory))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the exporter's of itself
            program = torch.onnx.export(
                form,
                (observation, *memory),
                input_names=["observation", *names],
                output_names=[*form.outputs, *(f"next_{name}" for name in names)],
                dynamic_shapes=shapes,
                dynamo=True,
                verbose=False,
            )
        assert program is not None
        model = program.model_proto
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:  # the exporter and what it calls raise many types
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ExportError(
            f"{spec.algorithm} cannot be exported as ONNX: its network has a layer that ONNX cannot express "
            f"({type(error).__name__}: {lines[0][:300]}); export safetensors"
        ) from error
    for key, text in about.items():
        model.metadata_props.add(key=key, value=text)
    with replacing(path) as partial:
        partial.write_bytes(model.SerializeToString())


def record_video(spec: RunSpec, policy: Policy, out: Path, seed: int) -> str | None:
    """Write the video of an episode, or of its first minute; return why there is none, or None.

    Args:
        spec: the run's specification.
        policy: chooses the actions.
        out: the MP4 file, written atomically.
        seed: seed of the episode.
    """
    protocol = spec.evaluation_protocol
    env = make_env(spec.environment, env_config(spec, None if ":" in protocol else protocol))
    observation = np.zeros(env.observation_shape, env.observation_dtype)
    first = np.zeros(1, int)
    try:
        with ExitStack() as files:
            video: VideoFile | None = None

            def append(frame: NDArray[np.uint8]) -> None:
                nonlocal video
                if video is None:
                    video = files.enter_context(VideoFile.opened(out, env.frames_per_second))
                video.append(frame)

            env.on_frame = append
            env.reset(seed, observation)
            n_steps, is_over = 0, False
            longest = VIDEO_S * env.frames_per_second
            while not is_over and n_steps < longest and (video is None or video.n_frames < longest):
                action = policy.act(observation[None], first)[0][0]
                step = env.step(action, observation)
                n_steps, is_over = n_steps + 1, step.episode_over
            return None if video is not None else "the environment draws no frames"
    finally:
        env.close()
