"""Log training to a Callboard server, and start, follow and read its runs.

with callboard.init(name="my run", algorithm="my_ppo", environment="CartPole-v1", seed=1) as run:
    run.log({"loss/policy": 0.5}, agent_steps=100)
    run.episode(return_=200.0, length=200)

client = callboard.connect()
runs = client.start("paac", "ALE/Pong-v5", seeds=range(3), stop={"agent_steps": 4_000_000})
returns = runs.wait().series("rollout/episode_return").to_pandas()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callboard.client import Client, connect
from callboard.comparing import Comparison, Estimate, Group, Verdict
from callboard.errors import CallboardError, NotConfigured, Rejected, Unreachable
from callboard.experiments import Study, Sweep
from callboard.external import ExternalRun
from callboard.following import Change, NewPoints, RecordedEpisode, StateChange
from callboard.media import Histogram, Image, Table
from callboard.runs import Run, Runs
from callboard.series import Series
from callboard.starting import init
from callboard.summary_writer import SummaryWriter
from callboard.syncing import Refused, Synced, discard, sync

if TYPE_CHECKING:
    from callboard.wrappers import RecordReturns

__all__ = [
    "CallboardError",
    "Change",
    "Client",
    "Comparison",
    "Estimate",
    "ExternalRun",
    "Group",
    "Histogram",
    "Image",
    "NewPoints",
    "NotConfigured",
    "RecordReturns",
    "RecordedEpisode",
    "Refused",
    "Rejected",
    "Run",
    "Runs",
    "Series",
    "StateChange",
    "Study",
    "SummaryWriter",
    "Sweep",
    "Synced",
    "Table",
    "Unreachable",
    "Verdict",
    "connect",
    "discard",
    "init",
    "sync",
]


def __getattr__(name: str) -> Any:
    """`RecordReturns` needs gymnasium, and is imported when it is used."""
    if name == "RecordReturns":
        from callboard.wrappers import RecordReturns

        return RecordReturns
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
