"""Trains a run."""

import argparse
import os
import signal
import sys
import time

from backend.specs import machine_faults
from backend.specs.events import StartingEvent
from workers.engine.commands import add_run_dir, read_spec

HELP = "train, writing the event log"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare its arguments."""
    add_run_dir(parser)
    parser.add_argument("--attempt", type=int, default=1)
    parser.add_argument("--resume", metavar="FILE", help="checkpoint to resume from")
    parser.add_argument("--control-fd", type=int, help="socket to the supervisor")


def run(args: argparse.Namespace) -> int:
    """Train."""
    spec = read_spec(args.run_dir)

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
