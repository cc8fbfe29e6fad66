"""Writes a thumbnail of an episode, or of a video."""

import argparse
from pathlib import Path

from workers.engine.commands import add_run_dir, add_starts, read_spec

HELP = "write the frame in the middle of an episode as JPEG"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare its arguments."""
    add_run_dir(parser)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--replay", type=Path, help="repeat the replay")
    source.add_argument("--video", type=Path, help="take it from the rendered video")
    parser.add_argument("--out", type=Path, required=True)
    add_starts(parser)


def run(args: argparse.Namespace) -> int:
    """Write the thumbnail."""
    # A video needs no specification: a run that is trained elsewhere has none that can be read.
    spec = None if args.video is not None else read_spec(args.run_dir)

    from workers.engine.training.video import middle_frame, middle_frame_of_video, write_thumbnail

    frame = (
        middle_frame_of_video(args.video) if spec is None else middle_frame(spec, args.replay, args.starts)
    )
    write_thumbnail(frame, args.out)
    return 0
