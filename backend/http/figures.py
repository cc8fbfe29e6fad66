"""A figure as a file, such as CSV or a matplotlib script, and the parameters that ask for it."""

import io
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal
from zipfile import ZIP_DEFLATED, ZipFile

import orjson
from fastapi import Depends, Query, Request, Response

from backend.drawing.export_caption import caption
from backend.drawing.export_script import LegendPlace, ScriptOptions, matplotlib_script
from backend.drawing.export_series import as_csv
from backend.drawing.figure import Figure, FigureOptions
from backend.drawing.palette import Theme
from backend.drawing.schemas import FigureOut
from backend.drawing.theme import plain_text
from backend.http.transfer import conditional_response
from backend.platform.errors import Invalid
from backend.platform.text import Text
from backend.specs.problems import quoted

Format = Literal["json", "html", "csv", "matplotlib", "zip", "caption", "latex"]

_FILES: dict[Format, tuple[str, str]] = {
    "html": ("text/html", "html"),
    "csv": ("text/csv", "csv"),
    "matplotlib": ("text/x-python", "py"),
    "zip": ("application/zip", "zip"),
    "caption": ("text/plain", "txt"),
    "latex": ("application/x-tex", "tex"),
}
"""Media type and ending of each format but JSON."""

_MAX_ENTRY = 300
FORMATS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": FigureOut,
        "content": {media: {"schema": {"type": "string"}} for media, _ in _FILES.values()},
        "description": "A figure, or a file with it.",
    }
}
"""The response for the OpenAPI document."""


@dataclass(frozen=True)
class FigureForm:
    """In what form a figure is requested."""

    format: Format
    script: ScriptOptions
    entries: Mapping[int, str] = field(default_factory=dict)
    """Texts of entries of the legend, by their numbers in the figure, in the wanted order."""

    def arranged(self, figure: Figure) -> Figure:
        """The figure with these entries of its legend, before the others.

        Raises:
            Invalid: there is no such entry.
        """
        if not self.entries:
            return figure
        names = dict.fromkeys(
            trace["name"] for trace in figure.data if "name" in trace and trace.get("showlegend") is not False
        )
        known = dict(enumerate(names))
        if unknown := self.entries.keys() - known.keys():
            raise Invalid.field("entry", f"the legend has no entry {min(unknown)}")
        texts = {known[number]: plain_text(text) for number, text in self.entries.items()}
        order = [*texts, *(name for name in names if name not in texts)]
        ranks = {name: rank for rank, name in enumerate(order)}
        data = sorted(figure.data, key=lambda trace: ranks.get(trace.get("name"), len(ranks)))
        renamed = [
            trace | {"name": texts[trace["name"]]} if trace.get("name") in texts else trace for trace in data
        ]
        return replace(figure, data=renamed)

    @property
    def is_for_paper(self) -> bool:
        """Whether the figure is drawn with the default `FigureOptions`, whatever options the request has."""
        return self.format not in ("json", "html")

    @property
    def has_caption(self) -> bool:
        """Whether the file has a caption."""
        return self.format in ("matplotlib", "zip", "caption")


async def _form(
    format: Annotated[
        Format,
        Query(
            description="`json` for Plotly, or a page of its own as `html`. `csv`: what is drawn, one row a "
            "point. `matplotlib`: a script that redraws it from this CSV as PDF and SVG. `zip`: this script "
            "and this CSV. `caption`: a sentence for each thing that a reader must know. `latex`: of a table "
            "of a study alone, for the package booktabs."
        ),
    ] = "json",
    width_in: Annotated[
        float, Query(ge=1, le=40, description="Width in inches, of the matplotlib script.")
    ] = ScriptOptions.width_in,
    line_width_pt: Annotated[
        float, Query(ge=0.1, le=10, description="Width of lines in points, of the matplotlib script.")
    ] = ScriptOptions.line_width_pt,
    legend: Annotated[
        LegendPlace, Query(description="Place of the legend, of the matplotlib script.")
    ] = ScriptOptions.legend,
    heading: Annotated[
        Text, Query(max_length=200, description="Title above the plot, of the matplotlib script.")
    ] = ScriptOptions.title,
    log_y: Annotated[
        bool, Query(description="Whether its vertical axes are logarithmic.")
    ] = ScriptOptions.log,
    entry: Annotated[
        list[Text],
        Query(
            max_length=100,
            description="Entries of the legend in the wanted order, of files for papers: each as "
            "`NUMBER:TEXT`, with the number that it has in the figure, from 0. The others follow.",
        ),
    ] = [],  # noqa: B006 - FastAPI copies it
) -> FigureForm:
    entries = {}
    for given in entry:
        number, _, text = given.partition(":")
        if not (number.isascii() and number.isdigit() and len(number) < 4 and 0 < len(text) <= _MAX_ENTRY):
            raise Invalid.field(
                "entry", f"{quoted(given)} is not NUMBER:TEXT of at most {_MAX_ENTRY} characters"
            )
        entries[int(number)] = text
    return FigureForm(format, ScriptOptions(width_in, line_width_pt, legend, heading, log_y), entries)


RequestedForm = Annotated[FigureForm, Depends(_form)]
"""Query parameters of every figure that can be exported."""


async def _options(
    theme: Annotated[Theme, Query(description="Colours for light or for dark pages.")] = "light",
    width: Annotated[int | None, Query(ge=200, le=4000, description="Width in CSS pixels, if known.")] = None,
    embedded: Annotated[
        bool, Query(description="For a panel of a page, which has a heading and a tooltip of its own.")
    ] = False,
) -> FigureOptions:
    return FigureOptions(theme=theme, width_px=width, in_panel=embedded)


async def _options_of_form(
    form: RequestedForm, options: Annotated[FigureOptions, Depends(_options)]
) -> FigureOptions:
    return FigureOptions() if form.is_for_paper else options


Options = Annotated[FigureOptions, Depends(_options)]
FormOptions = Annotated[FigureOptions, Depends(_options_of_form)]
"""As `Options`; a figure for a paper is drawn with the defaults."""
MaxPoints = Annotated[int, Query(ge=1, le=10_000, description="Maximum number of points per series.")]


def file_response(figure: Figure, form: FigureForm, name: str, about: str | None = None) -> Response:
    """The figure as a download.

    Args:
        figure: the figure, drawn with the default `FigureOptions` unless the form is HTML.
        form: any but JSON.
        name: name of the file, without its ending.
        about: the figure's caption, for `caption` and for the script; by default what the figure itself says.

    Raises:
        Invalid: it has a trace that cannot be exported, or the form is for tables alone.
    """
    return download(_content(form.arranged(figure), form, name, about), form, name)


def download(content: str | bytes, form: FigureForm, name: str) -> Response:
    """A file of this form, but JSON, with this name and the form's ending."""
    media_type, ending = _FILES[form.format]
    # A download also because the content security policy of this server would block the script of the HTML.
    headers = {"Content-Disposition": f'attachment; filename="{name}.{ending}"'}
    return Response(content, media_type=media_type, headers=headers)


def _content(figure: Figure, form: FigureForm, name: str, about: str | None) -> str | bytes:
    if form.format == "csv":
        return as_csv(figure)
    if form.format == "html":
        return figure.to_html()
    if form.format == "latex":
        raise Invalid.field(
            "format", "a figure has no latex; use csv, matplotlib, zip, caption, html or json"
        )
    text = caption(figure) if about is None else about
    if form.format == "caption":
        return text + "\n"
    script = matplotlib_script(figure, text, form.script)
    if form.format == "matplotlib":
        return script
    # The script reads the CSV of its own name.
    archive = io.BytesIO()
    with ZipFile(archive, "w", ZIP_DEFLATED) as files:
        files.writestr(f"{name}.py", script)
        files.writestr(f"{name}.csv", as_csv(figure))
    return archive.getvalue()


def figure_response(request: Request, figure: Figure, form: FigureForm, name: str) -> Response:
    """The figure as JSON, or as a download of this name."""
    if form.format != "json":
        return file_response(figure, form, name)
    return conditional_response(request, orjson.dumps(figure.document()))
