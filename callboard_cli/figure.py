"""`callboard figure`: a figure of runs as files, over REST and without a browser."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from backend.specs.problems import quoted
from callboard_cli import fail
from callboard_cli.connection import connect
from callboard_cli.runs import MAX_COMPARED, check_ids

if TYPE_CHECKING:
    from callboard_cli.remote import Remote

Kind = Literal["learning_curve", "curve", "seed_curve", "scatter", "diagnostic"]


class Format(StrEnum):
    """A format of files."""

    # An enumeration, since typer has no options that are lists of literals.
    CSV = "csv"
    MATPLOTLIB = "matplotlib"
    CAPTION = "caption"
    JSON = "json"


ENDINGS = {Format.CSV: "csv", Format.MATPLOTLIB: "py", Format.CAPTION: "txt", Format.JSON: "json"}


def figure(
    kind: Annotated[
        Kind,
        typer.Argument(
            help="learning_curve; curve of --metric; seed_curve, with one line for each group of runs that "
            "differ in their seed alone; scatter of scores against --setting; diagnostic --panel of one run."
        ),
    ],
    run_ids: Annotated[
        list[str] | None,
        typer.Argument(help="Ids of runs; or choose them by --filter.", callback=check_ids),
    ] = None,
    filter_text: Annotated[
        str | None, typer.Option("--filter", help="Draw the runs that match, such as group:nightly.")
    ] = None,
    metric: Annotated[str | None, typer.Option(help="Of curve and seed_curve.")] = None,
    sources: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            help="Of curve and seed_curve, such as 'actor 0', or * for all. Repeatable; default: the whole "
            "run, or all sources of a metric that it lacks.",
        ),
    ] = None,
    panel: Annotated[str | None, typer.Option(help="Of diagnostic.")] = None,
    setting: Annotated[str | None, typer.Option(help="Of scatter, such as config.learning_rate.")] = None,
    score: Annotated[
        Literal["score", "best_return"] | None,
        typer.Option(help="Of scatter: of the last 100 training episodes, or the best return."),
    ] = None,
    group_by: Annotated[
        Literal["seed"] | None,
        typer.Option(help="Of scatter: draw each run in the style that its group has in seed_curve."),
    ] = None,
    environment: Annotated[
        str | None, typer.Option(help="Draw only the runs of this environment, in the styles of all.")
    ] = None,
    x: Annotated[
        Literal["agent_steps", "frames", "updates", "wall_time_s", "clock_time_s", "episodes"] | None,
        typer.Option(help="Unit of the horizontal axis."),
    ] = None,
    x_from: Annotated[float | None, typer.Option(help="Lowest x.")] = None,
    x_to: Annotated[float | None, typer.Option(help="Highest x.")] = None,
    points: Annotated[int | None, typer.Option(help="Maximum number of points of a line.")] = None,
    smoothing: Annotated[
        Literal["points", "ema", "window"] | None,
        typer.Option(help="Moving average over points, or over x: exponential, or over a window."),
    ] = None,
    smooth: Annotated[float | None, typer.Option(help="Weight of the past, for points.")] = None,
    scale: Annotated[float | None, typer.Option(help="In units of x, for ema and window.")] = None,
    centre: Annotated[
        Literal["median", "mean", "iqm"] | None, typer.Option(help="Line of seed_curve.")
    ] = None,
    interval: Annotated[
        Literal["ci95", "sd", "se", "bootstrap", "min_max"] | None,
        typer.Option(help="Band of seed_curve; bootstrap is for a mean or iqm of at least five runs."),
    ] = None,
    seeds: Annotated[
        bool, typer.Option("--seeds", help="Also each run of seed_curve, as a thin line.")
    ] = False,
    band: Annotated[
        Literal["auto", "sd", "min_max", "none"] | None,
        typer.Option(help="Around the lines of learning_curve and curve; auto: sd around a single line."),
    ] = None,
    styles: Annotated[
        list[int] | None,
        typer.Option(
            "--style",
            min=0,
            max=99,
            help="Styles of the runs, in their order. Repeatable; default: 0, 1, 2, …",
        ),
    ] = None,
    group_styles: Annotated[
        list[str] | None,
        typer.Option("--group-style", help="Style of a group of seed_curve, as GROUP:STYLE. Repeatable."),
    ] = None,
    formats: Annotated[
        list[Format] | None,
        typer.Option(
            "--format",
            help="csv: what is drawn; matplotlib: a script that redraws it from the CSV as PDF and SVG; "
            "caption; json: for Plotly. Repeatable; default: all.",
        ),
    ] = None,
    width_in: Annotated[float | None, typer.Option(help="Width of the script's figure in inches.")] = None,
    line_width_pt: Annotated[float | None, typer.Option(help="Width of its lines in points.")] = None,
    legend: Annotated[
        Literal["below", "right", "inside", "none"] | None, typer.Option(help="Place of its legend.")
    ] = None,
    entries: Annotated[
        list[str] | None,
        typer.Option(
            "--entry", help="Text of an entry of its legend, as NUMBER:TEXT, in the wanted order. Repeatable."
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title above its plot.")] = None,
    log_y: Annotated[bool, typer.Option("--log-y", help="Logarithmic vertical axis.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(help="Files to write, without their endings; default: named after the figure."),
    ] = None,
) -> None:
    """Write a figure of runs as files: CSV, a matplotlib script, a caption and Plotly's JSON."""
    if bool(run_ids) == bool(filter_text):
        raise fail("run: name the runs to draw, or choose them by --filter")
    given: dict[str, Any] = {"metric": metric, "source": sources, "panel": panel, "environment": environment}
    of_scatter: dict[str, Any] = {"setting": setting, "score": score, "group_by": group_by}
    of_lines: dict[str, Any] = {"x": x, "x_from": x_from, "x_to": x_to, "points": points, "smooth": smooth}
    of_lines |= {"smoothing": smoothing, "scale": scale, "centre": centre, "interval": interval}
    for name, value in (of_lines if kind == "scatter" else of_scatter).items():
        if value is not None:
            raise fail(f"--{name.replace('_', '-')}: not an option of {kind}")
    given |= {"x": setting, "y": score, "group_by": group_by} if kind == "scatter" else of_lines
    given |= {"seeds": seeds or None, "band": band, "style": styles, "group_style": group_styles}
    given |= {"width_in": width_in, "line_width_pt": line_width_pt, "legend": legend, "heading": title}
    given["entry"] = entries
    params = {name: value for name, value in given.items() if value is not None} | {"log_y": log_y}
    target = output or Path(kind)
    with connect() as remote:
        if filter_text:
            # One more than can be drawn: the service's message states the limit.
            runs = remote.items("/runs", {"filter": filter_text}, MAX_COMPARED + 1)
            run_ids = [run["id"] for run in runs]
        if not run_ids:
            raise fail(f"filter: no run matches {quoted(filter_text)}")
        if kind == "diagnostic" and len(run_ids) > 1:
            raise fail(f"run: diagnostic draws one run, not {len(run_ids)}")
        for form in formats or Format:
            file = target.with_name(f"{target.name}.{ENDINGS[form]}")
            _write(remote, f"/figures/{kind}", params | {"run": run_ids, "format": form.value}, file)
            typer.echo(str(file))


def _write(remote: "Remote", path: str, params: dict[str, Any], file: Path) -> None:
    with remote.download(path, params) as parts:
        try:
            file.write_bytes(b"".join(parts))
        except OSError as error:
            raise fail(f"output: {file}: {error.strerror}; name another file with --output") from None
