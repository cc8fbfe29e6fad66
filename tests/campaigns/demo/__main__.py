"""Trains the demo run anew, with four of its episodes as replays and videos: `make demo`.

With `--clip RUN_DIRECTORY`, cuts the clip of an environment from a run's replay with the highest return
instead, for the page of an installation without runs. That of Breakout is from a minute of training:

    callboard train --algorithm paac --environment ALE/Breakout-v5 --set network=compact --wall-time-s 60 \
        --run-directory /tmp/breakout
    make demo ARGS="--clip /tmp/breakout"
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import av
import numpy as np
import typer
from numpy.typing import NDArray

from backend.specs import events
from backend.specs.run import RunSpec, parse_run_spec
from callboard_cli.demo import FOLDER
from workers.engine.envs.thumbnails import file_name
from workers.engine.training.event_log import EventLog, read_frames
from workers.engine.training.video import render

ROOT = Path(__file__).parents[3]
CLIPS = ROOT / "frontend" / "src" / "assets" / "clips"

AGENT_STEPS = 150_000
STAGES = (0.0, 0.1, 0.25, 1.0)
"""The shares of the agent steps near which the kept episodes ended."""
MAX_BYTES = 10**6

NAME = "Demo: PAAC learns CartPole"
NOTES = (
    "A finished run that came with Callboard. Open its replays, zoom into its curves, look at its config. "
    "Lists and statistics leave it out, unless the filter `demo:true` asks for it. Delete it when you like: "
    "it does not come back."
)

CLIP_S = 6.0
CLIP_FRAMES_PER_S = 30
CLIP_HEIGHT = 210


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the demo run, or a clip."""
    parser = argparse.ArgumentParser(prog="make demo")
    parser.add_argument("--clip", type=Path, metavar="RUN_DIRECTORY")
    given = parser.parse_args(arguments)
    with TemporaryDirectory(prefix="demo-") as name:
        if given.clip is not None:
            write_clip(given.clip, Path(name))
            return
        trained = Path(name) / "run"
        train(trained)
        write_run(trained, FOLDER)
    typer.echo(f"{FOLDER}: {size_bytes(FOLDER):,} bytes")


def train(folder: Path) -> None:
    """Train the run as a user would, in a terminal."""
    command = [sys.executable, "-m", "callboard_cli.main", "train", "--algorithm", "paac"]
    command += ["--environment", "CartPole-v1", "--agent-steps", str(AGENT_STEPS)]
    command += ["--set", "evaluation_episodes=0", "--run-directory", str(folder)]
    subprocess.run(command, check=True)


def write_run(trained: Path, out: Path) -> None:
    """Write a trained run without checkpoints, with the replays and videos of four episodes.

    Raises:
        RuntimeError: it is too large.
    """
    shutil.rmtree(out, ignore_errors=True)
    (out / "videos").mkdir(parents=True)
    (out / "replays").mkdir()
    spec = json.loads((trained / "spec.json").read_text()) | {"name": NAME, "notes": NOTES}
    (out / "spec.json").write_text(json.dumps(spec, indent=1) + "\n")
    logged = [event for frame, _ in read_frames(trained / "attempts" / "1" / "events.log") for event in frame]
    kept = kept_episodes([event for event in logged if isinstance(event, events.EpisodeEvent)])
    log = EventLog(out / "attempts" / "1" / "events.log")
    for event in logged:
        if isinstance(event, events.CheckpointSavedEvent | events.CheckpointsRemovedEvent):
            continue
        if isinstance(event, events.ProvenanceEvent):
            # The command names folders of the machine that trained it.
            plain = event.provenance.model_copy(update={"command": ["make", "demo"]})
            event = event.model_copy(update={"provenance": plain})
        if not isinstance(event, events.EpisodeEvent) or event in kept:
            log.add(event)
    log.close()
    for episode in kept:
        replay = trained / "replays" / episode.replay
        shutil.copy(replay, out / "replays")
        render(parse_run_spec(spec), replay, out / "videos" / f"{replay.stem}.mp4")
    if size_bytes(out) > MAX_BYTES:
        raise RuntimeError(f"the demo run has {size_bytes(out):,} bytes, more than {MAX_BYTES:,}")


def kept_episodes(episodes: Sequence[events.EpisodeEvent]) -> list[events.EpisodeEvent]:
    """The episodes nearest to `STAGES`, each once."""
    kept: list[events.EpisodeEvent] = []
    for stage in STAGES:
        others = [episode for episode in episodes if episode not in kept]
        kept.append(min(others, key=lambda other: abs(other.agent_steps - stage * AGENT_STEPS)))
    return kept


def size_bytes(folder: Path) -> int:
    """Size of all files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def write_clip(run: Path, scratch: Path) -> None:
    """Write some seconds of a run's replay with the highest return, small and without sound: those with most
    reward, or if there are several, those nearest to its middle."""
    stored = json.loads((run / "spec.json").read_text())
    known = {name: stored[name] for name in ("algorithm", "environment", "environment_config", "stop")}
    spec: RunSpec = parse_run_spec(known)
    video = scratch / "episode.mp4"
    # Of equal ones the latest of training, in which an agent explores.
    rewards, replay = max(
        ((np.load(path)["rewards"], path) for path in sorted((run / "replays").glob("*.npz"), reverse=True)),
        key=lambda played: float(played[0].sum()),
    )
    n_frames = render(spec, replay, video)
    CLIPS.mkdir(parents=True, exist_ok=True)
    out = CLIPS / Path(file_name(spec.environment)).with_suffix(".mp4")
    with av.open(str(video)) as source, av.open(str(out), "w", options={"movflags": "+faststart"}) as target:
        frames = source.streams.video[0]
        rate = float(frames.average_rate or CLIP_FRAMES_PER_S)
        every = max(1, round(rate / CLIP_FRAMES_PER_S))
        n_decisions = min(len(rewards), round(CLIP_S * rate / n_frames * len(rewards)))
        first = int(best_start(rewards, n_decisions) / len(rewards) * n_frames)
        stream = target.add_stream("libx264", rate=round(rate / every))
        stream.width = round(CLIP_HEIGHT * frames.width / frames.height / 2) * 2
        stream.height = CLIP_HEIGHT
        stream.pix_fmt = "yuv420p"
        stream.options = {"preset": "slow", "crf": "30", "tune": "animation"}
        for number, frame in enumerate(source.decode(frames)):
            if first <= number < first + CLIP_S * rate and (number - first) % every == 0:
                target.mux(stream.encode(frame.reformat(stream.width, stream.height, format="yuv420p")))
        target.mux(stream.encode())
    typer.echo(f"{out}: {out.stat().st_size:,} bytes")


def best_start(rewards: NDArray[np.floating[Any]], n: int) -> int:
    """Where n decisions with most reward start; of several places the one nearest to the middle."""
    sums = np.convolve(rewards, np.ones(n), "valid")
    best = np.flatnonzero(sums >= sums.max() - 1e-9)
    return int(best[np.abs(best - (len(sums) - 1) / 2).argmin()])


if __name__ == "__main__":
    main()
