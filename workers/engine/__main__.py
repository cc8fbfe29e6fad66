"""The engine as a process: one run directory in, an event log (or a score, or a video) out.

    python -m workers.engine train RUN_DIR --attempt N [--resume FILE] [--control-fd FD]
    python -m workers.engine evaluate FOLDER --checkpoint PATH --episodes N --seed S
    python -m workers.engine video FOLDER --replay PATH --out PATH [--observed PATH]

RUN_DIR, or FOLDER, holds `spec.json`. `--parent PID` names the process whose end is the engine's. Exit
codes: 0 done, 1 failed, 2 bad input; a signal is a signal's.
"""

import argparse
import json
import os
import signal
import sys
from pathlib import Path

from backend.specs.run import InvalidSpec, RunSpec, parse_run_spec
from workers.engine.lifeline import die_with_parent


def _train(args: argparse.Namespace, spec: RunSpec) -> int:
    from workers.engine.control import Control
    from workers.engine.devices import prepare_torch
    from workers.engine.envs.vector import WorldDiedError
    from workers.engine.training import Training

    prepare_torch()
    control = Control(args.control_fd)
    control.handle_signals()
    training = Training(spec, args.run_dir, attempt=args.attempt, resume=args.resume, control=control)
    try:
        return 1 if training.run().state == "failed" else 0
    except WorldDiedError as error:
        # Whoever killed a part of the engine killed the engine: it is queued again, not failed.
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError from error


def _evaluate(args: argparse.Namespace, spec: RunSpec) -> int:
    from workers.engine.devices import prepare_torch
    from workers.engine.evaluation import evaluate, load_policy

    prepare_torch()
    policy = load_policy(spec, args.checkpoint, args.seed)
    result = evaluate(policy, spec, episodes=args.episodes, seed=args.seed, processes=args.processes)
    report = {
        "protocol": result.protocol,
        "seed": args.seed,
        "returns": result.returns,
        "lengths_frames": result.lengths_frames,
        "mean_return": result.mean_return,
    }
    sys.stdout.write(json.dumps(report) + "\n")
    return 0


def _video(args: argparse.Namespace, spec: RunSpec) -> int:
    from workers.engine.video import render

    render(spec, args.replay, args.out, args.observed)
    return 0


def main() -> int:
    """Run one engine."""
    parser = argparse.ArgumentParser(prog="python -m workers.engine", description="Run one engine.")
    tasks = parser.add_subparsers(required=True)
    train = tasks.add_parser("train", help="train, writing the event log")
    train.add_argument("--attempt", type=int, default=1)
    train.add_argument("--resume", metavar="FILE", help="checkpoint to go on from")
    train.add_argument("--control-fd", type=int, help="socket to the supervisor")
    train.set_defaults(task=_train)
    evaluate = tasks.add_parser("evaluate", help="score a checkpoint; prints one JSON line")
    evaluate.add_argument("--checkpoint", type=Path, required=True)
    evaluate.add_argument("--episodes", type=int, default=30)
    evaluate.add_argument("--seed", type=int, default=0)
    evaluate.add_argument("--processes", type=int, default=2)
    evaluate.set_defaults(task=_evaluate)
    video = tasks.add_parser("video", help="draw a replay as MP4")
    video.add_argument("--replay", type=Path, required=True)
    video.add_argument("--out", type=Path, required=True)
    video.add_argument("--observed", type=Path, help="where to write what the network saw")
    video.set_defaults(task=_video)
    for task in (train, evaluate, video):
        task.add_argument("--parent", type=int, default=os.getppid(), help="process whose end is this one's")
        task.add_argument("run_dir", type=Path)
    args = parser.parse_args()
    die_with_parent(args.parent)
    try:
        spec = parse_run_spec(json.loads((args.run_dir / "spec.json").read_text("utf-8")))
    except (OSError, ValueError, InvalidSpec) as error:
        sys.stderr.write(f"spec.json: {error}\n")
        return 2
    return int(args.task(args, spec))


if __name__ == "__main__":
    sys.exit(main())
