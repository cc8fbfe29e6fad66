"""All processes of a Gorila run, as the engine manages them: start, requests, reports, restores, end.

The engine's loop calls `work_until`, which sends requests and handles replies until the time is up. It waits
for all of them at once: `_call` keeps each with what to do with its reply, and `_receive` handles the next.

- A process of actors or learners gets a request to work for a while, and replies with a report.
- A process of parameter shards is asked for reports, and at intervals for snapshots of its shards.
- A process of replay shards is asked how full it is.

Ray restarts a process that dies. Its requests then fail, and it is asked again after `RETRY_S`. A restarted
process of parameter shards has no parameters: it is first restored from its last snapshots, as a new
incarnation, and the updates since then are lost. The run fails if a process stays away for `DOWN_TIMEOUT_S`
or raises an error itself, or if a server of Ray ends.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from backend.specs.algorithms.gorila import GorilaConfig
from backend.specs.run import RunSpec
from workers.engine.envs import make_env
from workers.engine.methods.base import config_of
from workers.engine.methods.dqn.actor import frame_shape
from workers.engine.methods.gorila.cluster import RayCluster
from workers.engine.methods.gorila.parameters import ParameterServer, Version
from workers.engine.methods.gorila.shards import ParameterShardProcess, ReplayShardProcess
from workers.engine.methods.gorila.stats import RunStats
from workers.engine.methods.gorila.worker import Replay, WorkerAssignment, WorkerProcess, WorkRequest
from workers.engine.nn.seeds import REPLAY_CHOICE_STREAM
from workers.engine.processes.phases import enter_phase

RETRY_S = 0.2
"""Pause before a process is called again that died or had nothing to learn from, and after each report."""
DOWN_TIMEOUT_S = 300.0
"""Maximum time that a process may be down before it fails the run."""
STORE_BYTES_PER_PROCESS = 16 * 2**20
"""Bytes of Ray's object store for each process, besides those of its parts of theta."""

OnReply = Callable[[Any], None]


class GorilaProcessError(RuntimeError):
    """A process raised an error, or did not come back; the message has its traceback."""


@dataclass(eq=False)
class _Process:
    """A process of the run."""

    name: str
    handle: Any
    retry_at: float = 0.0
    """When it may be called again."""
    down_since: float | None = None
    """When it died; None while it answers."""


@dataclass(eq=False)
class _Worker(_Process):
    """A process of actors and learners."""

    assignment: WorkerAssignment = field(kw_only=True)
    actors: list[int] = field(kw_only=True)
    """Numbers of its actors; empty for a process of learners."""
    requested_steps: int = 0
    """Agent steps of its pending request."""


@dataclass(eq=False)
class _ParameterProcess(_Process):
    """A process of parameter shards."""

    shards: list[int] = field(kw_only=True)
    """Numbers of its shards."""
    incarnation: int = 0
    """How often it has been restored."""
    is_restored: bool = False
    """Whether it has parameters; if not, it is restored before anything else."""
    snapshots: dict[int, dict[str, Any]] = field(default_factory=dict)
    """The last snapshot of each of its shards."""
    snapshot_at: float = 0.0


class ProcessGroup:
    """The processes of a run; no call to one blocks the others."""

    def __init__(self, spec: RunSpec, bounds: list[tuple[int, int]], stats: RunStats) -> None:
        """Start all processes; `restore` comes next.

        Args:
            spec: the run.
            bounds: the part of theta of each parameter shard: its first index, and the one after its last.
            stats: the run's counts.
        """
        self._spec = spec
        self._config = c = config_of(spec, GorilaConfig)
        self._stats = stats
        n = c.parts_per_process
        self._pending: dict[Any, tuple[_Process, str, OnReply]] = {}
        largest = max(last - first for first, last in bounds) * 4 * n  # bytes, of float32
        # A process may have a pull, two pushes (`IN_FLIGHT` of `remote`) and a snapshot in the store at once.
        self._cluster = RayCluster(c.ray_processes * (STORE_BYTES_PER_PROCESS + 4 * largest))
        try:
            self._start(bounds)
            self._await_processes()
        except KeyboardInterrupt:
            self._cluster.abandon()
            raise
        except BaseException:
            self.close()
            raise

    def _start(self, bounds: list[tuple[int, int]]) -> None:
        from workers.engine.methods.gorila.remote import RemoteParameterServer

        c, cluster = self._config, self._cluster
        self._parameter_processes = [
            _ParameterProcess(
                _format_name("parameter shard", ks), cluster.start(i, ParameterShardProcess), shards=ks
            )
            for i, ks in enumerate(_split_into_groups(c.n_shards, c.parts_per_process))
        ]
        server = RemoteParameterServer([(p.handle, p.shards) for p in self._parameter_processes], bounds)
        self._replays: list[_Process] = []
        self._workers = [
            _Worker(
                name,
                cluster.start(place, WorkerProcess, self._spec),
                assignment=assignment,
                actors=list(assignment.actors),
            )
            for place, name, assignment in self._assignments(server)
        ]

    def _await_processes(self) -> None:
        """Wait until every process is there; one that dies is replaced later."""
        import ray

        handles = [process.handle for process in (*self._parameter_processes, *self._replays, *self._workers)]
        waiting = [handle.__ray_ready__.remote() for handle in handles]
        while waiting:
            enter_phase(f"starting {len(handles) - len(waiting) + 1} of {len(handles)} processes")
            _, waiting = ray.wait(waiting, num_returns=1)

    def _assignments(self, server: ParameterServer) -> list[tuple[int, str, WorkerAssignment]]:
        """Place (which stands for a machine), name and assignment of each worker process; starts the replay
        shards that they use."""
        c = self._config
        groups = _split_into_groups(c.n_actors, c.parts_per_process)
        n_replays = c.n_replay_shards if c.replay == "global" else c.n_actors
        capacity = math.ceil(c.replay_capacity / n_replays)
        min_transitions = math.ceil(c.learning_starts_agent_steps / n_replays)
        if c.replay == "bundled":
            # None: each actor and learner uses the replay memory of its own bundle.
            return [
                (
                    i,
                    _format_name("bundle", ks),
                    WorkerAssignment(server, dict.fromkeys(ks), dict.fromkeys(ks), capacity, min_transitions),
                )
                for i, ks in enumerate(groups)
            ]
        shards = self._start_replays(n_replays, capacity)
        local = c.replay == "local"

        def replay(k: int) -> Replay | None:
            from workers.engine.methods.gorila.remote import RemoteReplay

            # Actor k and learner k have the same seed, from which only the learner draws.
            seed = np.random.SeedSequence((self._spec.seed, REPLAY_CHOICE_STREAM + k))
            return RemoteReplay(
                shards, home=k % n_replays if local else None, rng=np.random.default_rng(seed)
            )

        def assignment(actors: list[int], learners: list[int]) -> WorkerAssignment:
            actor_replays, learner_replays = ({k: replay(k) for k in ks} for ks in (actors, learners))
            return WorkerAssignment(server, actor_replays, learner_replays, capacity, min_transitions)

        learner_groups = _split_into_groups(c.n_learners, c.parts_per_process)
        actors = [(i, _format_name("actor", ks), assignment(ks, [])) for i, ks in enumerate(groups)]
        learners = [
            (i, _format_name("learner", ks), assignment([], ks)) for i, ks in enumerate(learner_groups)
        ]
        return actors + learners

    def _start_replays(self, n: int, capacity: int) -> list[tuple[Any, int]]:
        """Start n replay shards; returns the handle of the process and the number of each."""
        env = make_env(self._spec.environment, self._spec.environment_config)
        shape = frame_shape(self._spec, env)
        env.close()
        shards: list[tuple[Any, int]] = []
        for i, ks in enumerate(_split_into_groups(n, self._config.parts_per_process)):
            capacities = dict.fromkeys(ks, capacity)
            handle = self._cluster.start(i, ReplayShardProcess, shape, capacities, self._spec.seed)
            self._replays.append(_Process(_format_name("replay shard", ks), handle))
            shards += [(handle, k) for k in ks]
        return shards

    def restore(self, snapshots: list[dict[str, Any]]) -> None:
        """Restore each parameter shard from its snapshot, and wait until all are restored."""
        try:
            self.pause()
            for process in self._parameter_processes:
                process.snapshots = {k: snapshots[k] for k in process.shards}
                process.is_restored = False
            while not all(process.is_restored for process in self._parameter_processes):
                for process in self._parameter_processes:
                    if not process.is_restored:
                        self._restore(process)
                self._receive(math.inf)
        except KeyboardInterrupt:
            self._cluster.abandon()
            raise

    def work_until(self, until: float, request: WorkRequest) -> None:
        """Let all processes work until `until`, or until they have taken the requested decisions together.

        Requests of earlier calls may still be pending, and count against the bound. So between two pauses
        `request.agent_steps` is what is left to one and the same bound, or practically infinite.

        Raises:
            ChildDiedError: a server of Ray has ended.
            GorilaProcessError: a process raised an error, or did not come back.
        """
        self._cluster.check_servers()
        self._config = request.config
        bound = self._stats.agent_steps + request.agent_steps
        while (now := time.monotonic()) < until and self._stats.agent_steps < bound:
            self._request_work(request, bound)
            self._poll_shards(now)
            self._receive(until)

    def pause(self) -> None:
        """Wait for every pending reply and make no further requests."""
        while self._pending:
            self._receive(math.inf)

    def pause_and_snapshot(self) -> list[dict[str, Any]]:
        """A snapshot of each parameter shard, taken while no process works."""
        self.pause()
        began = time.monotonic()
        while any(process.snapshot_at < began for process in self._parameter_processes):
            self._poll_shards(time.monotonic(), snapshots=True)
            self._receive(time.monotonic() + RETRY_S)
        self.pause()
        snapshots = {
            k: snapshot for process in self._parameter_processes for k, snapshot in process.snapshots.items()
        }
        return [snapshots[k] for k in sorted(snapshots)]

    def close(self) -> None:
        """End every process."""
        self._pending.clear()
        self._cluster.close()

    def _request_work(self, request: WorkRequest, bound: int) -> None:
        """Send a request to every idle worker process; all together stay within the bound on agent steps."""
        now = time.monotonic()
        busy = {process for process, _, _ in self._pending.values() if isinstance(process, _Worker)}
        idle = [worker for worker in self._workers if worker not in busy and worker.retry_at <= now]
        remaining_steps = bound - self._stats.agent_steps - sum(worker.requested_steps for worker in busy)
        n_acting = sum(bool(worker.actors) for worker in idle)
        for worker in idle:
            worker.requested_steps = 0
            if worker.actors:
                worker.requested_steps = min(math.ceil(remaining_steps / n_acting), 2**31)
                remaining_steps -= worker.requested_steps
                n_acting -= 1
                if worker.requested_steps == 0:
                    continue
            begun = {k: request.episodes_begun.get(k, 0) for k in worker.actors}
            own = replace(request, agent_steps=worker.requested_steps, episodes_begun=begun)
            ref = worker.handle.work.remote(own, worker.assignment)
            self._call(worker, "work", ref, partial(self._on_work_report, worker))

    def _poll_shards(self, now: float, *, snapshots: bool = False) -> None:
        """Ask the processes of shards for reports and, when due or wanted, snapshots; restore those that have
        been restarted."""
        pending = {(process, kind) for process, kind, _ in self._pending.values()}
        for process in self._parameter_processes:
            if process.retry_at > now or any(waiting is process for waiting, _ in pending):
                continue
            if not process.is_restored:
                self._restore(process)
            elif snapshots or now - process.snapshot_at >= self._config.snapshot_interval_s:
                ref = process.handle.snapshot.remote()
                self._call(process, "snapshot", ref, partial(self._on_snapshots, process, now))
            else:
                ref = process.handle.report.remote(self._config.learning_rate)
                self._call(process, "report", ref, partial(self._on_shard_report, process))
        for replay in self._replays:
            if replay.retry_at <= now and (replay, "fills") not in pending:
                self._call(replay, "fills", replay.handle.report.remote(), partial(self._on_fills, replay))

    def _call(self, process: _Process, kind: str, ref: Any, on_reply: OnReply) -> None:
        self._pending[ref] = (process, kind, on_reply)

    def _receive(self, until: float) -> None:
        """Handle the next reply, if one comes until `until`; if none is pending, pause for a moment.

        Raises:
            GorilaProcessError: a process raised an error, or did not come back.
        """
        import ray
        from ray.exceptions import RayActorError, RayError, RayTaskError

        timeout_s = None if until == math.inf else max(until - time.monotonic(), 0.0)
        if not self._pending:
            time.sleep(RETRY_S if timeout_s is None else min(timeout_s, RETRY_S))
            return
        ready, _ = ray.wait(list(self._pending), num_returns=1, timeout=timeout_s)
        for ref in ready:
            process, _, on_reply = self._pending.pop(ref)
            try:
                on_reply(ray.get(ref))
                process.down_since = None
            except RayTaskError as error:
                raise GorilaProcessError(f"{process.name}: {error}") from None
            except RayError as error:
                if isinstance(error, RayActorError) and error.actor_init_failed:
                    raise GorilaProcessError(f"{process.name}: {error}") from None
                self._on_exit(process)

    def _on_exit(self, process: _Process) -> None:
        """Postpone the next call to a process that died, which Ray restarts.

        Raises:
            GorilaProcessError: the process has been away for too long.
        """
        now = time.monotonic()
        process.retry_at = now + RETRY_S
        if isinstance(process, _ParameterProcess):
            process.is_restored = False
        if process.down_since is None:
            process.down_since = now
            self._stats.warn(f"the process of {process.name} died and is restarted")
        if now - process.down_since > DOWN_TIMEOUT_S:
            raise GorilaProcessError(
                f"the process of {process.name} died and did not come back within {DOWN_TIMEOUT_S:.0f} s"
            )

    def _on_work_report(self, worker: _Worker, report: Any) -> None:
        worker.requested_steps = 0
        if report.agent_steps == 0 and report.gradients == 0:
            # It had nothing to learn from, or no theta.
            worker.retry_at = time.monotonic() + RETRY_S
        self._stats.on_work_report(worker.actors, report)

    def _on_shard_report(self, process: _ParameterProcess, report: Any) -> None:
        if report.incarnation != process.incarnation:
            process.is_restored = False
            return
        self._stats.on_shard_report(report)
        process.retry_at = time.monotonic() + RETRY_S

    def _on_fills(self, process: _Process, fills: Any) -> None:
        self._stats.on_replay_fills(fills)
        process.retry_at = time.monotonic() + RETRY_S

    def _on_snapshots(
        self, process: _ParameterProcess, at: float, snapshots: dict[int, dict[str, Any]]
    ) -> None:
        if not snapshots:  # it has been restarted
            process.is_restored = False
            return
        process.snapshots = snapshots
        process.snapshot_at = at
        self._stats.on_versions(
            {k: Version(process.incarnation, snapshot["updates"]) for k, snapshot in snapshots.items()}
        )

    def _restore(self, process: _ParameterProcess) -> None:
        pending = any(waiting is process for waiting, _, _ in self._pending.values())
        if pending or process.retry_at > time.monotonic():
            return
        process.incarnation += 1  # now: if the reply is lost, learners may know this incarnation all the same
        ref = process.handle.restore.remote(process.snapshots, self._config, process.incarnation)
        self._call(process, "restore", ref, partial(self._on_restored, process))

    def _on_restored(self, process: _ParameterProcess, _: None) -> None:
        process.is_restored = True
        lost = {
            k: self._stats.on_shard_restored(k, Version(process.incarnation, snapshot["updates"]))
            for k, snapshot in process.snapshots.items()
        }
        if any(lost.values()):
            self._stats.warn(
                f"{process.name} was restored from a snapshot; {max(lost.values())} updates are lost"
            )


def _split_into_groups(n: int, size: int) -> list[list[int]]:
    return [list(range(first, min(first + size, n))) for first in range(0, n, size)]


def _format_name(kind: str, ks: list[int]) -> str:
    return f"{kind} {ks[0]}" if len(ks) == 1 else f"{kind}s {ks[0]} to {ks[-1]}"
