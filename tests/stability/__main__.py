"""GA3C's minimum training batch and stability on a small game, as Figure 7 of Babaeizadeh et al. 2017 has it.

    python -m tests.stability [--environment CartPole-v1] [--batches 1 20 40] [--seeds 3]
                              [--agent-steps 200000] [--figure stability.html]

Trains each minimum batch with each seed, alternating, all else alike. Prints, by batch, the score at the end,
how deep it fell below its best on the way, and the policy lag; draws every run's curve into one page.
"""

import argparse
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from plotly.colors import qualitative

from backend.specs.events import AnyEvent, Points, Report
from backend.specs.run import parse_run_spec
from workers.engine.devices import prepare_torch
from workers.engine.event_log import read_frames
from workers.engine.training import Training


@dataclass
class Curve:
    """One run: scores by agent steps, and what its updates were like."""

    batch: int
    seed: int
    agent_steps: list[int] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    lag: list[float] = field(default_factory=list)
    updates: int = 0
    wall_time_s: float = 0.0

    def hear(self, event: AnyEvent) -> None:
        """Take what the run said."""
        if isinstance(event, Report) and event.mean_return_100 is not None:
            self.agent_steps.append(event.agent_steps)
            self.score.append(event.mean_return_100)
            self.updates, self.wall_time_s = event.updates, event.wall_time_s
        elif isinstance(event, Points) and event.metric == "ga3c/policy_lag":
            self.lag += event.value

    @property
    def fall(self) -> float:
        """The most that the score was below its best so far."""
        return float(np.max(np.maximum.accumulate(self.score) - self.score))


def train(environment: str, batch: int, seed: int, agent_steps: int) -> Curve:
    """One run, in a folder that is thrown away."""
    spec = parse_run_spec(
        {
            "algorithm": "ga3c",
            "environment": environment,
            "seed": seed,
            "stop": {"agent_steps": agent_steps},
            "config": {"min_training_batch": batch, "adjustment_interval_s": 0.0, "evaluation_episodes": 0},
        }
    )
    curve = Curve(batch, seed)
    with tempfile.TemporaryDirectory() as folder:
        ended = Training(spec, Path(folder)).run()
        for frame, _ in read_frames(Path(folder) / "attempts" / "1" / "events.log"):
            for event in frame:
                curve.hear(event)
    if ended.state != "finished":
        raise SystemExit(f"batch {batch}, seed {seed}: {ended.reason}\n{ended.traceback or ''}")
    return curve


def drawn(environment: str, curves: list[Curve]) -> go.Figure:
    """Every run's curve, a colour a batch."""
    figure = go.Figure()
    batches = sorted({curve.batch for curve in curves})
    for curve in curves:
        k = batches.index(curve.batch)
        figure.add_scatter(
            x=curve.agent_steps,
            y=curve.score,
            mode="lines",
            line={"color": qualitative.Plotly[k % len(qualitative.Plotly)]},
            name=f"minimum batch {curve.batch}",
            legendgroup=str(curve.batch),
            showlegend=curve.seed == min(c.seed for c in curves),
        )
    figure.update_layout(
        title=f"GA3C on {environment}: minimum training batch",
        xaxis_title="agent steps",
        yaxis_title="mean return of the last 100 episodes",
    )
    return figure


def main() -> None:
    """Train, compare, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--environment", default="CartPole-v1")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 20, 40])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--agent-steps", type=int, default=200_000)
    parser.add_argument("--figure", type=Path, default=Path("stability.html"))
    args = parser.parse_args()
    prepare_torch()
    curves = [
        train(args.environment, batch, seed, args.agent_steps)
        for seed in range(args.seeds)
        for batch in args.batches
    ]
    drawn(args.environment, curves).write_html(args.figure)
    print("batch  score at the end     deepest fall         policy lag  updates  agent steps/s")  # noqa: T201
    for batch in args.batches:
        its = [curve for curve in curves if curve.batch == batch]
        scores, falls = [c.score[-1] for c in its], [c.fall for c in its]
        print(  # noqa: T201
            f"{batch:5d}  {np.mean(scores):6.1f} ({min(scores):.1f} to {max(scores):.1f})"
            f"  {np.mean(falls):6.1f} ({min(falls):.1f} to {max(falls):.1f})"
            f"  {np.mean([np.mean(c.lag) for c in its]):10.2f}  {np.mean([c.updates for c in its]):7.0f}"
            f"  {np.mean([c.agent_steps[-1] / c.wall_time_s for c in its]):13,.0f}"
        )


if __name__ == "__main__":
    main()
