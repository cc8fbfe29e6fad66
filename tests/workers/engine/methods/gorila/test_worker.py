"""A process of actors and learners, called here by hand."""

from collections.abc import Sequence

import pytest

from backend.specs.algorithms.gorila import GorilaConfig
from tests.workers.engine.methods.gorila.gorila_runs import LocalParameterServer, spec_of
from workers.engine.methods.gorila import worker
from workers.engine.methods.gorila.parameters import ParameterShard, Pulled, Version
from workers.engine.methods.gorila.worker import WorkerAssignment, WorkerProcess, WorkRequest
from workers.engine.nn.networks import action_values
from workers.engine.nn.optimizers import FlatParameters


class UnreachableServer(LocalParameterServer):
    """Shards that do not answer until `reachable` is set."""

    reachable = False

    def pull(self, known: Sequence[Version]) -> dict[int, Pulled]:
        return super().pull(known) if self.reachable else {}


def test_process_that_reached_no_shard_at_its_start_pulls_theta_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "prepare_process", lambda: None)
    spec = spec_of(n_actors=1, n_learners=1)
    assert isinstance(spec.config, GorilaConfig)
    theta = FlatParameters(action_values("mlp", (4,), 2)).theta
    server = UnreachableServer([ParameterShard(theta.clone(), spec.config)])
    process = WorkerProcess(spec)
    request = WorkRequest(spec.config, seconds=600.0, agent_steps=20, watched=False, episodes_begun={0: 0})
    assignment = WorkerAssignment(server, {0: None}, {0: None}, 1_000, 50)
    assert process.work(request, assignment).agent_steps == 0
    server.reachable = True
    assert process.work(request, assignment).agent_steps == 20
