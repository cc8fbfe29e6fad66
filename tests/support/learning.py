"""The score that an algorithm reaches on CartPole."""

from pathlib import Path

from backend.specs.events import AnyEvent, ReportEvent
from backend.specs.run import parse_run_spec
from workers.engine.training.loop import Training

SOLVED = 195.0
"""Mean return over 100 episodes at which gymnasium considers CartPole solved."""


def cartpole_score(algorithm: str, run_dir: Path, agent_steps: int, **config: float) -> float:
    """Train on CartPole until solved or `agent_steps`. Return the mean return of the last 100 episodes."""
    reports: list[ReportEvent] = []

    def keep_reports(event: AnyEvent) -> None:
        if isinstance(event, ReportEvent):
            reports.append(event)

    spec = parse_run_spec(
        {
            "algorithm": algorithm,
            "environment": "CartPole-v1",
            "seed": 1,
            "stop": {"agent_steps": agent_steps, "score": SOLVED},
            "config": {"evaluation_episodes": 0, **config},
        }
    )
    ended = Training(spec, run_dir, on_event=keep_reports).run()
    assert ended.state == "finished", ended.traceback
    assert reports[-1].mean_return_100 is not None
    return reports[-1].mean_return_100
