"""A rollout worker in a child process, on one thread: it shares theta and leaves its dtheta in memory."""

from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from backend.specs.algorithms.synchronous import SynchronousConfig
from backend.specs.run import RunSpec
from workers.engine.envs import make_env
from workers.engine.methods.base import Samples
from workers.engine.methods.paac.method import RolloutFactories, Slice
from workers.engine.methods.paac.rollout import RolloutResult, RolloutWorker
from workers.engine.nn.devices import prepare_torch
from workers.engine.nn.optimizers import FlatParameters
from workers.engine.processes.child import Channel, Child, serve, stop
from workers.engine.processes.shared_memory import SharedArrays


class ParameterMemory(SharedArrays):
    """theta, theta_minus and the workers' dtheta, in memory that the workers share."""

    vectors: NDArray[np.float32]

    def __init__(self, n_workers: int, n_parameters: int) -> None:
        super().__init__({"vectors": ((2 + n_workers, n_parameters), "float32")})

    def views(self) -> tuple[Tensor, Tensor, list[Tensor]]:
        """theta, theta_minus and each worker's dtheta, (P,) each."""
        theta, theta_minus, *dthetas = torch.from_numpy(self.vectors)
        return theta, theta_minus, dthetas


class RemoteRolloutWorker:
    """See `RolloutWorker`, whose methods it has."""

    def __init__(
        self,
        spec: RunSpec,
        factories: RolloutFactories,
        environments: Slice,
        memory: ParameterMemory,
        number: int,
    ) -> None:
        """Start the process.

        Args:
            spec: the run.
            factories: builds the method's network, algorithm and config.
            environments: the environments of this worker.
            memory: where theta is.
            number: which of the memory's dthetas is this worker's.
        """
        _, _, dthetas = memory.views()
        self._dtheta = dthetas[number]
        name = f"rollout worker {number}"
        self._child = Child(run_rollout_worker, spec, factories, environments, memory, number, name=name)

    def wait_ready(self) -> None:
        """Wait until its environments are built."""
        self._child.reply()

    def begin(self, frames: int, progress: float, *, watched: bool) -> None:
        """Start on a rollout."""
        self._child.send("rollout", (frames, progress, watched))

    def finish(self) -> RolloutResult:
        """Wait for the rollout and its first gradient.

        Raises:
            ChildError: the process failed, or has exited.
        """
        result: RolloutResult = self._child.reply()
        result.dtheta = self._dtheta
        return result

    def begin_gradient(self) -> None:
        """Start on the next gradient."""
        self._child.send("gradient")

    def finish_gradient(self) -> dict[str, float]:
        """Wait for it; as `RolloutWorker.finish_gradient`.

        Raises:
            ChildError: the process failed, or has exited.
        """
        metrics: dict[str, float] = self._child.reply()
        return metrics

    def change(self, config: SynchronousConfig) -> None:
        """As `RolloutWorker.change`."""
        self._child.request("change", config)

    def samples(self) -> Samples:
        """As `RolloutWorker.samples`."""
        samples: Samples = self._child.request("samples")
        return samples

    def state(self) -> dict[str, Any]:
        """As `RolloutWorker.state`."""
        state: dict[str, Any] = self._child.request("state")
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """As `RolloutWorker.restore`."""
        self._child.request("restore", state)

    def close(self) -> None:
        """Stop the process."""
        stop([self._child])


def run_rollout_worker(
    channel: Channel,
    spec: RunSpec,
    factories: RolloutFactories,
    environments: Slice,
    memory: ParameterMemory,
    number: int,
) -> None:
    """Entry point of the process: reply to requests until the learner closes the channel."""
    prepare_torch()
    theta, theta_minus, dthetas = memory.views()
    env = make_env(spec.environment, spec.environment_config)
    network = factories.network(spec.config, env)
    env.close()
    flat = FlatParameters(network, theta=theta, dtheta=dthetas[number])
    worker = RolloutWorker(spec, factories, environments, network, flat, theta_minus, processes=0)
    channel.send("ready")
    serve(channel, partial(_handle, worker))


def _handle(worker: RolloutWorker, request: str, argument: Any) -> Any:
    match request:
        case "rollout":
            frames, progress, watched = argument
            worker.begin(frames, progress, watched=watched)
            result = worker.finish()
            result.dtheta = None
            return result
        case "gradient":
            return worker.finish_gradient()
        case "samples":
            return worker.samples()
        case "state":
            return worker.state()
        case "restore":
            worker.restore(argument)
        case "change":
            worker.change(argument)
    return None
