"""What the tests of runs share: training CartPole for a moment, and reading what was reported."""

from pathlib import Path
from typing import Any

from backend.specs.events import (
    AnyEvent,
    PointsEvent,
)
from backend.specs.run import RunSpec, parse_run_spec
from tests.support.engine_process import logged
from workers.engine.training.control import Control
from workers.engine.training.loop import Training


def cartpole(stop: dict[str, Any], algorithm: str = "paac", **config: Any) -> RunSpec:
    quick = {"evaluation_episodes": 0, "n_e": 4}
    return parse_run_spec(
        {"algorithm": algorithm, "environment": "CartPole-v1", "stop": stop, "config": quick | config}
    )


def train(
    spec: RunSpec, run_dir: Path, attempt: int = 1, resume: str | None = None, control: Control | None = None
) -> list[AnyEvent]:
    Training(spec, run_dir, attempt=attempt, resume=resume, control=control).run()
    return logged(run_dir, attempt)


def only(kind: type[Any], said: list[AnyEvent]) -> list[Any]:
    return [event for event in said if isinstance(event, kind)]


def columns(said: list[AnyEvent], metric: str) -> list[tuple[int, float]]:
    return [
        pair
        for points in only(PointsEvent, said)
        if points.metric == metric
        for pair in zip(points.agent_steps, points.value, strict=True)
    ]
