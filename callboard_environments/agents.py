"""Trained agents, of a server's runs or of exported folders, which act in a program of one's own.

They need `callboard[worker]`.
"""

import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from backend.specs.agents import WEIGHTS
from backend.specs.problems import InvalidSpec
from backend.specs.run import parse_run_spec
from callboard.client import Client
from callboard.errors import CallboardError
from callboard.runs import Run
from callboard.transport import Transport
from callboard_environments.env import CallboardEnv
from workers.engine.envs import make_env
from workers.engine.training.evaluation import GreedyPolicy, load_policy, policies_of
from workers.engine.training.exported_agents import read_safetensors

if TYPE_CHECKING:
    import gymnasium

_PAGE = 200


class Agent:
    """An agent of a checkpoint, on this machine's CPU. It acts as the method's paper evaluates agents, or,
    loaded with `greedy`, always takes the best action."""

    def __init__(self, spec: Any, policy: Any, env: Any, checkpoint: dict[str, Any]) -> None:
        """Use `load_agent`.

        Args:
            spec: the run's specification.
            policy: policy of the engine.
            env: an environment of the engine, as the run has it.
            checkpoint: the checkpoint as the REST API describes it.
        """
        self.checkpoint = checkpoint
        """The checkpoint as the REST API describes it: `id`, `agent_steps`, `file` and others. Empty for an
        exported agent."""
        self._spec = spec
        self._policy = policy
        self._shape: tuple[int, ...] = env.observation_shape
        self._dtype = env.observation_dtype
        self._space = env.action_space

    def act(self, observation: npt.ArrayLike) -> Any:
        """Choose an action.

        Args:
            observation: what the run's environment returns, with its preprocessing: of one environment, or of
                several that step together, stacked along the first axis.

        Returns:
            The action: a whole number, or an array of numbers within the environment's bounds. For several
            environments an array with a row for each.

        Raises:
            ValueError: the observation has another shape than the run's environment returns.
        """
        array = np.asarray(observation, self._dtype)
        is_single = array.shape == self._shape
        if not is_single and array.shape[1:] != self._shape:
            raise ValueError(
                f"observation: must have the shape {self._shape}, or {('N', *self._shape)} for several "
                f"environments: got {array.shape}"
            )
        batch = array[None] if is_single else array
        actions, _values, _policies = self._policy.act(batch, np.arange(len(batch)))
        actions = np.asarray(actions)
        if actions.ndim > 1:
            actions = self._space.clip(actions)
            return actions[0] if is_single else actions
        return int(actions[0]) if is_single else actions

    def reset(self, environment: int = 0) -> None:
        """Forget the episode: call it when one is over. Only agents with an LSTM remember anything.

        Args:
            environment: which of several environments, from 0.
        """
        self._policy.forget(environment)

    def make_env(self, render_mode: str | None = None) -> "gymnasium.Env[Any, Any]":
        """The run's environment with its settings and preprocessing, as a gymnasium environment. As in
        evaluations, an episode is a whole game, also where training ends one at a lost life.

        Args:
            render_mode: None or `rgb_array`.

        Raises:
            ValueError: it is a custom environment, which your own code has to create.
        """
        if self._spec.custom is not None:
            raise ValueError(f"environment: {self._spec.environment} is a custom one: create it yourself")
        config = self._spec.environment_config.model_dump()
        if "life_loss_terminal" in config:
            config["life_loss_terminal"] = False
        return CallboardEnv(self._spec.environment, render_mode, **config)


def load_agent(
    client: Client, run: Run | str, checkpoint: str = "best", *, seed: int = 0, greedy: bool = False
) -> Agent:
    """Download a checkpoint, and load its agent.

    Args:
        client: a client of the server.
        run: a run that Callboard has trained, or its id.
        checkpoint: `best`: the one with the highest mean return of an evaluation under the run's own
            protocol; `latest`; or the id of a checkpoint.
        seed: seed of the agent's random actions. The same seed and observations give the same actions.
        greedy: always choose the best action; default: act as the method's paper evaluates agents.

    Raises:
        ValueError: no such run or checkpoint, or none was evaluated; or the run is an external one, or has a
            custom environment that this machine lacks.
        CallboardError: the download is damaged.
        Unreachable: the server cannot be reached.
    """
    transport = client.transport
    data = transport.request("GET", f"runs/{run.id if isinstance(run, Run) else run}")
    if data["spec"].get("origin") == "external":
        raise ValueError(f"run: {data['id']} is an external run: only its own script can load its agent")
    chosen = _choose(transport, data["id"], checkpoint)
    try:
        spec = parse_run_spec(data["spec"])
    except InvalidSpec as error:
        raise ValueError(f"run: this version cannot read its specification: {error}") from None
    with tempfile.TemporaryDirectory(prefix="callboard-agent-") as folder:
        path = Path(folder) / Path(chosen["file"]).name
        digest = hashlib.sha256()
        with path.open("wb") as file, transport.stream(f"checkpoints/{chosen['id']}/file") as answer:
            for part in answer.iter_bytes():
                digest.update(part)
                file.write(part)
        if digest.hexdigest() != chosen["sha256"]:
            raise CallboardError(f"checkpoint {chosen['id']}: what was downloaded is damaged; try again")
        policy = load_policy(spec, path, seed)
    env = make_env(spec.environment, spec.environment_config)
    try:
        return Agent(spec, GreedyPolicy(policy) if greedy else policy, env, chosen)
    finally:
        env.close()


def load_exported_agent(folder: str | Path, *, seed: int = 0, greedy: bool = False) -> Agent:
    """Load the agent of a folder that `callboard agents export --format safetensors` has written.

    Nothing in the folder is executed, and only `model.safetensors` is read.

    Args:
        folder: the folder.
        seed: seed of the agent's random actions. The same seed and observations give the same actions.
        greedy: always choose the best action; default: act as the method's paper evaluates agents.

    Raises:
        ValueError: there is no such file, or it is not that of an agent that this machine can build: arrays
            are missing or have other shapes, or the algorithm or the environment is not installed.
    """
    spec, network = read_safetensors(Path(folder) / WEIGHTS["safetensors"])
    [policy] = policies_of(spec, network, [seed])
    env = make_env(spec.environment, spec.environment_config)
    try:
        return Agent(spec, GreedyPolicy(policy) if greedy else policy, env, {})
    finally:
        env.close()


def _choose(transport: Transport, run_id: str, checkpoint: str) -> dict[str, Any]:
    """A checkpoint by its id, the latest one, or the best one.

    Raises:
        ValueError: there is none.
    """
    rows = list(_items(transport, f"runs/{run_id}/checkpoints"))
    if not rows:
        raise ValueError(f"run: {run_id} has no checkpoint")
    if checkpoint == "latest":
        return rows[0]  # the list has the latest first
    if checkpoint != "best":
        row = next((row for row in rows if row["id"] == checkpoint), None)
        if row is None:
            raise ValueError(
                f"checkpoint: must be best, latest or the id of one of run {run_id}: got {checkpoint!r}"
            )
        return row
    protocol = transport.request("GET", f"runs/{run_id}/evaluations/protocols")["default"]
    by_file = {row["file"]: row for row in rows}  # an evaluation names its checkpoint by the file
    scored = [
        evaluation
        for evaluation in _items(transport, f"runs/{run_id}/evaluations")
        if evaluation["protocol"] == protocol
        and evaluation["mean_return"] is not None
        and evaluation["checkpoint"] in by_file
    ]
    if not scored:
        raise ValueError(
            f"checkpoint: no checkpoint of run {run_id} has a score under its protocol {protocol}; "
            'evaluate one, or pass "latest"'
        )
    return by_file[max(scored, key=lambda evaluation: float(evaluation["mean_return"]))["checkpoint"]]


def _items(transport: Transport, path: str) -> Iterator[dict[str, Any]]:
    """The items of a list, over all pages."""
    params: dict[str, Any] = {"limit": _PAGE}
    while True:
        page = transport.request("GET", path, params=params)
        yield from page["items"]
        params["cursor"] = page["next_cursor"]
        if params["cursor"] is None:
            return
