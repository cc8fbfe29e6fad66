"""How well a method learns."""

from pathlib import Path

from backend.specs.events import AnyEvent, Report
from backend.specs.run import parse_run_spec
from workers.engine.training import Training

SOLVED = 195.0
"""Mean return over 100 episodes at which gymnasium calls CartPole solved."""


def cartpole_score(algorithm: str, run_dir: Path, agent_steps: int, **config: float) -> float:
    """Mean return of the last 100 training episodes on CartPole, once it is solved or so much was done."""
    reports: list[Report] = []

    def listen(event: AnyEvent) -> None:
        if isinstance(event, Report):
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
    ended = Training(spec, run_dir, on_event=listen).run()
    assert ended.state == "finished", ended.traceback
    assert reports[-1].mean_return_100 is not None
    return reports[-1].mean_return_100
