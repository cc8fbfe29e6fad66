"""The engine as a process: a run directory in; an event log, evaluation, video or thumbnail out.

    python -m workers.engine train RUN_DIR --attempt N [--resume FILE] [--control-fd FD]
    python -m workers.engine evaluate FOLDER --checkpoint PATH [--protocol ID] --episodes N --seed S
        [--starts PATH]
    python -m workers.engine video FOLDER --replay PATH --out PATH [--observed PATH] [--starts PATH]
        [--states PATH]
    python -m workers.engine game FOLDER --replay PATH --out PATH [--states PATH]
    python -m workers.engine thumbnail FOLDER (--replay PATH | --video PATH) --out PATH [--starts PATH]
    python -m workers.engine branch FOLDER --replay PATH --plan PATH --policy PATH --checkpoint PATH
        [--starts PATH] [--states PATH]
    python -m workers.engine saliency FOLDER --replay PATH --decision N --policy PATH --checkpoint PATH
        [--starts PATH] [--states PATH]
    python -m workers.engine start-set FOLDER --document PATH --out PATH
    python -m workers.engine play FOLDER --control-fd FD
    python -m workers.engine encode FOLDER --upload PATH --out PATH --form file|frames [--fps N]
    python -m workers.engine warm-up
    python -m workers.engine serve --requests FD

RUN_DIR, or FOLDER, holds `spec.json`; `encode`, `start-set` and `thumbnail --video` do not read it, and that
of `play` and `game` is a `PlaySetup`. The engine is killed when the process `--parent PID` ends. Exit codes:
0 done, or stopped by SIGTERM or SIGINT while training; 1 failed; 2 bad input; killed by a signal, that one's;
after a fault of the machine's disk, or if the checkpoint to resume from is damaged, as
`backend.specs.machine_faults` gives it, without a final event.

`serve` is the engine server: it loads what engines need, and forks one for each request of its worker.
"""

import argparse
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from backend.specs import machine_faults
from backend.specs.events import StartingEvent
from backend.specs.problems import InvalidSpec
from backend.specs.run import RunSpec, parse_run_spec
from workers.engine.processes.child import die_with_parent


def _train(args: argparse.Namespace, spec: RunSpec) -> int:
    from workers.engine.training.event_log import EventLog

    log = EventLog(args.run_dir / "attempts" / str(args.attempt) / "events.log")
    log.add(StartingEvent(time=time.time(), phase="importing packages"))
    log.close()

    from workers.engine.nn.devices import prepare_torch
    from workers.engine.processes.child import ChildDiedError
    from workers.engine.training.checkpoint import DamagedCheckpointError
    from workers.engine.training.control import Control
    from workers.engine.training.loop import Training

    prepare_torch()
    control = Control(args.control_fd)
    control.handle_signals()
    training = Training(spec, args.run_dir, attempt=args.attempt, resume=args.resume, control=control)
    try:
        return 1 if training.run().state == "failed" else 0
    except DamagedCheckpointError as error:
        if machine_faults.errno_of(error) is not None:
            raise
        sys.stderr.write(f"{error}\n")
        return machine_faults.UNREADABLE_CHECKPOINT_STATUS
    except ChildDiedError as error:
        # A child killed by a signal counts as the engine killed: the run is queued again, not failed.
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError from error


def _evaluate(args: argparse.Namespace, spec: RunSpec) -> int:
    from workers.engine.nn.devices import prepare_torch
    from workers.engine.training.evaluation import evaluate, load_policy

    prepare_torch()
    policy = load_policy(spec, args.checkpoint, args.seed)
    result = evaluate(
        policy,
        spec,
        episodes=args.episodes,
        seed=args.seed,
        processes=args.processes,
        protocol=args.protocol,
        starts=args.starts,
    )
    report = {
        "protocol": result.protocol,
        "seed": args.seed,
        "returns": result.returns,
        "lengths_frames": result.lengths_frames,
        "mean_return": result.mean_return,
    }
    args.answer.write(json.dumps(report) + "\n")
    return 0


def _video(args: argparse.Namespace, spec: RunSpec) -> int:
    from workers.engine.training.video import render

    render(spec, args.replay, args.out, args.observed, args.starts, args.states)
    return 0


def _game(args: argparse.Namespace) -> int:
    from backend.specs.play import PlaySetup
    from workers.engine.training.video import render_game

    setup = PlaySetup.model_validate_json((args.run_dir / "spec.json").read_text("utf-8"))
    render_game(setup, args.replay, args.out, args.states)
    return 0


def _thumbnail(args: argparse.Namespace, spec: RunSpec) -> int:
    from workers.engine.training.video import middle_frame, write_thumbnail

    write_thumbnail(middle_frame(spec, args.replay, args.starts), args.out)
    return 0


def _thumbnail_of_video(args: argparse.Namespace) -> int:
    from workers.engine.training.video import middle_frame_of_video, write_thumbnail

    write_thumbnail(middle_frame_of_video(args.video), args.out)
    return 0


def _branch(args: argparse.Namespace, spec: RunSpec) -> int:
    from backend.specs.algorithms import ALGORITHMS
    from backend.specs.branches import BranchPlan
    from workers.engine.nn.devices import prepare_torch
    from workers.engine.training.branches import play_continuations
    from workers.engine.training.evaluation import load_policies

    prepare_torch()
    plan = BranchPlan.model_validate_json(args.plan.read_text("utf-8"))
    policy_spec = parse_run_spec(json.loads(args.policy.read_text("utf-8")))
    reader, actor = load_policies(policy_spec, args.checkpoint, [plan.seed, plan.seed])
    outcome = play_continuations(
        spec,
        args.replay,
        (reader, actor),
        plan,
        action_values=ALGORITHMS[policy_spec.algorithm].action_values,
        value_is_per_life=bool(getattr(policy_spec.environment_config, "life_loss_terminal", False)),
        starts=args.starts,
        states=args.states,
    )
    args.answer.write(outcome.model_dump_json() + "\n")
    return 0


def _saliency(args: argparse.Namespace, spec: RunSpec) -> int:
    from workers.engine.nn.devices import prepare_torch
    from workers.engine.training.evaluation import load_policy
    from workers.engine.training.saliency import saliency_of_decision

    prepare_torch()
    policy_spec = parse_run_spec(json.loads(args.policy.read_text("utf-8")))
    policy = load_policy(policy_spec, args.checkpoint, 0)
    saliency = saliency_of_decision(
        spec, args.replay, policy, args.decision, starts=args.starts, states=args.states
    )
    args.answer.write(saliency.model_dump_json() + "\n")
    return 0


def _start_set(args: argparse.Namespace) -> int:
    from backend.specs.start_sets import StartSetContent
    from workers.engine.envs import starts
    from workers.engine.training.start_sets import StartSetMismatchError, verify

    try:
        verified, derived = verify(StartSetContent.model_validate_json(args.document.read_text("utf-8")))
    except StartSetMismatchError as error:
        args.answer.write(json.dumps({"error": str(error)}) + "\n")
        return 0
    starts.save(args.out, derived)
    args.answer.write(json.dumps({"error": None, "set": verified.model_dump()}) + "\n")
    return 0


def _encode(args: argparse.Namespace) -> int:
    from workers.engine.training.uploaded_video import report

    args.answer.write(report(args.upload, args.out, args.form, args.fps) + "\n")
    return 0


def _play(args: argparse.Namespace) -> int:
    from backend.specs.play import PlaySetup
    from workers.engine.training.play import play
    from workers.engine.training.restore import ReplayMismatchError

    setup = PlaySetup.model_validate_json((args.run_dir / "spec.json").read_text("utf-8"))
    try:
        play(setup, args.control_fd, args.run_dir)
    except ReplayMismatchError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _warm_up(args: argparse.Namespace) -> int:
    """Load what a run needs, and compile the kernels: an installation's first run would wait for both."""
    import workers.engine.nn.kernels
    import workers.engine.training.loop  # noqa: F401

    return 0


def _serve(args: argparse.Namespace) -> int:
    from workers.engine.server import serve

    arguments = serve(socket.socket(fileno=args.requests))
    return 0 if arguments is None else main(arguments)


def _separate_answer() -> IO[str]:
    """Standard output, for the one line of an answer; whatever else is printed there from now on, such as by
    a custom environment, goes to standard error."""
    answer = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return answer


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one engine.

    Args:
        arguments: those of the command line by default.
    """
    parser = argparse.ArgumentParser(prog="python -m workers.engine", description="Run one engine.")
    commands = parser.add_subparsers(required=True)
    train = commands.add_parser("train", help="train, writing the event log")
    train.add_argument("--attempt", type=int, default=1)
    train.add_argument("--resume", metavar="FILE", help="checkpoint to resume from")
    train.add_argument("--control-fd", type=int, help="socket to the supervisor")
    train.set_defaults(execute=_train)
    evaluate = commands.add_parser("evaluate", help="evaluate a checkpoint; prints one JSON line")
    evaluate.add_argument("--checkpoint", type=Path, required=True)
    evaluate.add_argument("--protocol", help="the run's by default")
    evaluate.add_argument("--episodes", type=int, default=30)
    evaluate.add_argument("--seed", type=int, default=0)
    evaluate.add_argument("--processes", type=int, default=2)
    evaluate.set_defaults(execute=_evaluate)
    video = commands.add_parser("video", help="render a replay as MP4")
    video.add_argument("--replay", type=Path, required=True)
    video.add_argument("--out", type=Path, required=True)
    video.add_argument("--observed", type=Path, help="where to write a video of the network's input")
    video.set_defaults(execute=_video)
    game = commands.add_parser("game", help="render a game that a person has played as MP4")
    game.add_argument("--replay", type=Path, required=True)
    game.add_argument("--out", type=Path, required=True)
    game.set_defaults(without_spec=_game)
    thumbnail = commands.add_parser("thumbnail", help="write the frame in the middle of an episode as JPEG")
    source = thumbnail.add_mutually_exclusive_group(required=True)
    source.add_argument("--replay", type=Path, help="repeat the replay")
    source.add_argument("--video", type=Path, help="take it from the rendered video")
    thumbnail.add_argument("--out", type=Path, required=True)
    thumbnail.set_defaults(execute=_thumbnail)
    for command in (video, game):
        command.add_argument("--states", type=Path, help="where to write emulator states of a long episode")
    branch = commands.add_parser("branch", help="play continuations of a replay; prints one JSON line")
    branch.add_argument("--plan", type=Path, required=True, help="a `BranchPlan`")
    branch.set_defaults(execute=_branch)
    saliency = commands.add_parser("saliency", help="compute a saliency map; prints one JSON line")
    saliency.add_argument("--decision", type=int, required=True)
    saliency.set_defaults(execute=_saliency)
    for command in (branch, saliency):
        command.add_argument("--replay", type=Path, required=True)
        command.add_argument("--policy", type=Path, required=True, help="spec.json of the checkpoint's run")
        command.add_argument("--states", type=Path, help="emulator states of a long episode")
        command.add_argument("--checkpoint", type=Path, required=True)
    for command in (evaluate, video, thumbnail, branch, saliency):
        command.add_argument("--starts", type=Path, help="states of the protocol's start set")
    encode = commands.add_parser("encode", help="encode an uploaded video; prints one JSON line")
    encode.add_argument("--upload", type=Path, required=True)
    encode.add_argument("--out", type=Path, required=True)
    encode.add_argument("--form", choices=["file", "frames"], required=True)
    encode.add_argument("--fps", type=float)
    start_set = commands.add_parser("start-set", help="verify a start set by replay; prints one JSON line")
    start_set.add_argument("--document", type=Path, required=True)
    start_set.add_argument("--out", type=Path, required=True, help="where to write the emulator states")
    play = commands.add_parser("play", help="simulate an environment that a person plays")
    play.add_argument("--control-fd", type=int, required=True, help="socket to the worker")
    warm_up = commands.add_parser("warm-up", help="compile the kernels")
    warm_up.set_defaults(without_spec=_warm_up)
    encode.set_defaults(without_spec=_encode)
    start_set.set_defaults(without_spec=_start_set)
    play.set_defaults(without_spec=_play)
    with_folder = (train, evaluate, video, game, thumbnail, branch, saliency, encode, start_set, play)
    for command in with_folder:
        command.add_argument("run_dir", type=Path)
    for command in (*with_folder, warm_up):
        command.add_argument(
            "--parent", type=int, default=os.getppid(), help="process that this one must not outlive"
        )
    for command in (evaluate, branch, saliency, encode, start_set):
        command.set_defaults(answers=True)
    serve = commands.add_parser("serve", help="fork engines, for a worker")
    serve.add_argument("--requests", type=int, required=True, help="socket to the worker")
    serve.add_argument("padding", nargs="?", help="room for the command lines of engines")
    serve.set_defaults(without_spec=_serve)
    args = parser.parse_args(arguments)
    if "parent" in args:
        die_with_parent(args.parent)
    if "answers" in args:
        args.answer = _separate_answer()
    try:
        return _run(args)
    except Exception as error:
        fault = machine_faults.errno_of(error)
        if fault is None:
            raise
        with suppress(OSError):  # unbuffered: the disk of its output may be the full one
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        return machine_faults.exit_status(fault)


def _run(args: argparse.Namespace) -> int:
    if "without_spec" in args:
        return int(args.without_spec(args))
    if getattr(args, "video", None) is not None:  # a run that is trained elsewhere has no such spec
        return _thumbnail_of_video(args)
    try:
        spec = parse_run_spec(json.loads((args.run_dir / "spec.json").read_text("utf-8")))
    except (OSError, ValueError, InvalidSpec) as error:
        if machine_faults.errno_of(error) is not None:
            raise
        sys.stderr.write(f"spec.json: {error}\n")
        return 2
    return int(args.execute(args, spec))


if __name__ == "__main__":
    sys.exit(main())
