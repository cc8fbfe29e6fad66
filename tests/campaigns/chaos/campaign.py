"""A chaos campaign: faults happen while runs train and users act; afterwards the invariants must hold."""

import random
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from backend.db import Run
from backend.db.engine import reading
from backend.specs.states import ENDED, RunState
from tests.campaigns.chaos import faults, invariants
from tests.campaigns.chaos.databases import DATABASES
from tests.campaigns.chaos.stack import Stack, running_stack
from tests.support.databases import short_folder
from tests.support.installation import CALLBOARD
from tests.support.waiting import rounds, until

ACTIVE_RUNS = 3
MEAN_PAUSE_S = 3.0
USER_SHARE = 0.25
"""Probability that a user acts between two faults."""
SETTLE_LIMIT_S = 240.0
"""How long runs that have not ended may stay unchanged."""
LATE_REQUEST_S = 15.0
"""After this time, a request that was not answered is not carried out any more."""
TEND_INTERVAL_S = 0.5
WORKER = (*CALLBOARD, "worker")
FAKE_WORKER = (sys.executable, "-m", "tests.campaigns.chaos.fake_worker")


@dataclass
class Report:
    """The log, counts and violations of a campaign."""

    database: str
    seed: int
    log: list[str] = field(default_factory=list)
    """The campaign's events, in order."""
    n_faults: int = 0
    n_runs: int = 0
    n_attempts: int = 0
    n_rows: int = 0
    violations: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.database}, seed {self.seed}: {self.n_faults} faults, {self.n_runs} runs, "
            f"{self.n_attempts} attempts, {self.n_rows} rows compared, {len(self.violations)} violations"
        )


class Campaign:
    """Faults on a running stack."""

    def __init__(
        self,
        stack: Stack,
        rng: random.Random,
        report: Report,
        on_event: Callable[[str], None],
        mean_pause_s: float = MEAN_PAUSE_S,
        kinds: Mapping[faults.Kind, int] = faults.FAULTS,
    ) -> None:
        self._stack = stack
        self._rng = rng
        self._mean_pause_s = mean_pause_s
        self._kinds = kinds
        self._report = report
        self._on_event = on_event
        self._started_at = monotonic()
        self._may_stop: set[str] = set()
        self._unanswered = False
        self._pending: list[tuple[str, Future[str | None]]] = []
        self._threads = ThreadPoolExecutor(max_workers=8)

    def cause_faults(self, n_faults: int) -> None:
        """Cause this many faults."""
        for _ in rounds(SETTLE_LIMIT_S):
            if self._stack.ask("GET", "/runs") is not None:
                break
            self._wait(TEND_INTERVAL_S)
        while self._report.n_faults < n_faults:
            self._wait(self._rng.expovariate(1 / self._mean_pause_s))
            self._look_after_runs(new=True)
            if self._rng.random() < USER_SHARE:
                self._user()
            fault = faults.draw(self._stack, self._rng, self._kinds)
            self._log(fault.title)
            self._report.n_faults += 1
            self._pending.append((fault.title, self._threads.submit(fault.happen)))

    def settle(self) -> None:
        """Wait until every service is back and every run has ended."""
        self._log("no more faults")
        deadline, last_revisions = monotonic() + SETTLE_LIMIT_S, 0
        while not self._settled():
            self._wait(TEND_INTERVAL_S)
            if (revisions := self._revisions()) != last_revisions:
                deadline, last_revisions = monotonic() + SETTLE_LIMIT_S, revisions
            if monotonic() > deadline:
                self._report.violations += [
                    f"run {run.id} is still {run.state}" for run in self._runs() if run.state not in ENDED
                ]
                break
        self._threads.shutdown()
        for title, future in self._pending:
            if (violation := future.result()) is not None:
                self._report.violations.append(f"{title}: {violation}")

    def _settled(self) -> bool:
        if any(not future.done() for _, future in self._pending) or not self._look_after_runs(new=False):
            return False
        if not self._unanswered:
            return True
        # A web process that starts answers what has waited for it, and one that was suspended may still do
        # what it was asked.
        if self._stack.ask("GET", "/runs") is None:
            return False
        self._unanswered = False
        self._wait(LATE_REQUEST_S)
        return self._look_after_runs(new=False) and not self._unanswered

    def check(self) -> None:
        """Stop the workers and collect violations."""
        report, stack = self._report, self._stack
        runs_dirs = [worker.home / "runs" for worker in stack.workers]
        late = stack.stop_workers()
        report.violations += [f"{name} did not end in time after SIGTERM" for name in late]
        with suppress(AssertionError):
            until(lambda: not stack.orphans(), SETTLE_LIMIT_S, every_s=0.1)
        orphans = stack.orphans()
        stack.repair_logs()
        report.violations += [f"orphan: {orphan}" for orphan in orphans]
        with reading(stack.engine) as session:
            for run in self._runs():
                report.n_runs += 1
                report.n_attempts += run.attempt
                report.n_rows += sum(map(len, invariants.story_of_rows(session, run.id).values()))
                report.violations += invariants.check_run(session, run, runs_dirs, stack.damage)
                report.violations += self._check_end(run)

    def _check_end(self, run: Run) -> list[str]:
        allowed = {RunState.FINISHED} | ({RunState.STOPPED} if run.id in self._may_stop else set())
        if run.state not in allowed:
            return [f"run {run.id} is {run.state} ({run.state_reason}): {run.error}"]
        if run.state == RunState.FINISHED and run.agent_steps < run.spec["stop"]["agent_steps"]:
            return [f"run {run.id} finished at {run.agent_steps} agent steps"]
        return []

    def _look_after_runs(self, *, new: bool) -> bool:
        """Keep enough runs active and resume those that faults made fail. Return whether all have ended."""
        try:
            runs = self._runs()
            with reading(self._stack.engine) as session:
                failed_by_faults = [
                    run
                    for run in runs
                    if run.state == RunState.FAILED and invariants.failed_by_attempt_limit(session, run)
                ]
        except SQLAlchemyError:  # the database is unreachable
            return False
        for run in failed_by_faults:
            self._ask(f"resume failed run {run.id}", f"/runs/{run.id}/resume", {})
        active = [run for run in runs if run.state not in ENDED]
        for _ in range(ACTIVE_RUNS - len(active) if new else 0):
            self._ask("start a run", "/runs", self._request())
        return not active and not failed_by_faults

    def _request(self) -> dict[str, Any]:
        config = {"n_e": 2, "n_w": 1, "evaluation_episodes": 2, "checkpoint_interval_s": 1}
        interval = self._rng.choice([0, 1_000])
        return {
            "algorithm": "paac",
            "environment": "CartPole-v1",
            "config": config | {"evaluation_interval_agent_steps": interval},
            "seed": self._rng.randrange(1000),
            "stop": {"agent_steps": self._rng.choice([1_000, 3_000, 6_000])},
            "notes": '{"step_s": 0.002, "checkpoint_every": 500, "episode_every": 70}',
        }

    def _user(self) -> None:
        """Stop, kill or resume a random run, as a user would."""
        try:
            runs = self._runs()
        except SQLAlchemyError:
            return
        if not runs:
            return
        run = self._rng.choice(runs)
        if run.state == RunState.STOPPED:
            self._ask(f"resume {run.id}", f"/runs/{run.id}/resume", {})
        elif run.state not in ENDED:
            action = self._rng.choice(["stop", "stop", "kill"])
            self._may_stop.add(run.id)
            self._ask(f"{action} {run.id}", f"/runs/{run.id}/{action}", None)

    def _runs(self) -> list[Run]:
        with reading(self._stack.engine) as session:
            return list(session.query(Run).order_by(Run.id))

    def _revisions(self) -> int:
        try:
            return sum(run.revision for run in self._runs())
        except SQLAlchemyError:
            return 0

    def _ask(self, title: str, path: str, body: object) -> None:
        answer = self._stack.ask("POST", path, body)
        self._unanswered |= answer is None
        self._log(f"{title}: {answer.status_code if answer is not None else 'no answer'}")
        if answer is not None and answer.status_code not in (200, 201, 202, 204, 409, 503):
            self._report.violations.append(f"{title}: {answer.status_code} {answer.text:.300}")

    def _wait(self, wait_s: float) -> None:
        ends_at = monotonic() + wait_s
        while (left_s := ends_at - monotonic()) > 0:
            self._stack.tend()
            sleep(min(left_s, TEND_INTERVAL_S))

    def _log(self, what: str) -> None:
        line = f"{monotonic() - self._started_at:7.1f} s  {what}"
        self._report.log.append(line)
        self._on_event(line)


def run(
    database: str,
    seed: int,
    n_faults: int,
    *,
    fake_engine: bool = False,
    mean_pause_s: float = MEAN_PAUSE_S,
    kinds: Mapping[faults.Kind, int] = faults.FAULTS,
    on_event: Callable[[str], None] = lambda line: None,
) -> Report:
    """Run a campaign on a new stack.

    Args:
        database: a name in `DATABASES`.
        seed: of faults and pauses. The machine's timing still differs between campaigns.
        n_faults: number of faults.
        fake_engine: use an engine that only pretends to train, which takes no processor time.
        mean_pause_s: mean time between two faults.
        kinds: the faults to draw from, with their relative frequency.
        on_event: called with each line of the log.
    """
    report = Report(database, seed)
    command = FAKE_WORKER if fake_engine else WORKER
    with short_folder() as folder, running_stack(folder, DATABASES[database], command) as stack:
        campaign = Campaign(stack, random.Random(seed), report, on_event, mean_pause_s, kinds)
        campaign.cause_faults(n_faults)
        campaign.settle()
        campaign.check()
        if report.violations:
            report.log += _logs(folder)
    return report


def _logs(folder: Path) -> list[str]:
    lines = []
    for path in sorted(folder.glob("*.log")):
        lines += [f"--- {path.name}", *path.read_text(errors="replace").splitlines()[-300:]]
    return lines
