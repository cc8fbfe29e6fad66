"""GA3C's minimum training batch and stability on a small game, as in Figure 7 of Babaeizadeh et al. 2017.

    python -m tests.campaigns.stability [--environment CartPole-v1] [--batches 1 20 40] [--seeds 3]
                              [--agent-steps 200000] [--figure stability.html]

Trains each minimum batch with each seed, alternating, with otherwise equal settings. Prints, by batch, the
final score, the largest drop below the best score, and the policy lag. Draws every run's curve in one page.
"""

import argparse
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from plotly.colors import qualitative

from backend.specs.events import AnyEvent, PointsEvent, ReportEvent
from backend.specs.run import parse_run_spec
from workers.engine.nn.devices import prepare_torch
from workers.engine.training.event_log import read_frames
from workers.engine.training.loop import Training


@dataclass
class Curve:
    """One run: scores by agent steps, policy lag and number of updates."""

    batch: int
    seed: int
    agent_steps: list[int] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    lag: list[float] = field(default_factory=list)
    updates: int = 0
    wall_time_s: float = 0.0

    def add(self, event: AnyEvent) -> None:
        """Add a logged event of the run."""
        if isinstance(event, ReportEvent) and event.mean_return_100 is not None:
            self.agent_steps.append(event.agent_steps)
            self.score.append(event.mean_return_100)
            self.updates, self.wall_time_s = event.updates, event.wall_time_s
        elif isinstance(event, PointsEvent) and event.metric == "ga3c/policy_lag":
            self.lag += event.value

    @property
    def largest_drop(self) -> float:
        """The largest drop of the score below its best so far."""
        return float(np.max(np.maximum.accumulate(self.score) - self.score))


def train(environment: str, batch: int, seed: int, agent_steps: int) -> Curve:
    """Train one run in a temporary folder."""
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
                curve.add(event)
    if ended.state != "finished":
        raise SystemExit(f"batch {batch}, seed {seed}: {ended.reason}\n{ended.traceback or ''}")
    return curve


def draw(environment: str, curves: list[Curve]) -> go.Figure:
    """Draw every run's curve, with one colour per batch."""
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
    """Train, compare and draw."""
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
    draw(args.environment, curves).write_html(args.figure)
    print("batch  final score          largest drop         policy lag  updates  agent steps/s")  # noqa: T201
    for batch in args.batches:
        runs = [curve for curve in curves if curve.batch == batch]
        scores, drops = [c.score[-1] for c in runs], [c.largest_drop for c in runs]
        print(  # noqa: T201
            f"{batch:5d}  {np.mean(scores):6.1f} ({min(scores):.1f} to {max(scores):.1f})"
            f"  {np.mean(drops):6.1f} ({min(drops):.1f} to {max(drops):.1f})"
            f"  {np.mean([np.mean(c.lag) for c in runs]):10.2f}  {np.mean([c.updates for c in runs]):7.0f}"
            f"  {np.mean([c.agent_steps[-1] / c.wall_time_s for c in runs]):13,.0f}"
        )


if __name__ == "__main__":
    main()
