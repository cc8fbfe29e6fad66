"""The code of the scripts that redraw figures: the same for every figure."""

import inspect

from backend.drawing.theme import tick_text

HEAD = '''"""Redraws a figure of Callboard from its CSV, as PDF and SVG.

    python FIGURE.py                  reads FIGURE.csv beside it; writes FIGURE.pdf and FIGURE.svg
    python FIGURE.py --help           other widths, fonts, legends

Needs Python 3.9 and matplotlib 3.7.
"""

'''

CODE = (
    r"""

import argparse
import csv
import math
import re
import textwrap
from pathlib import Path

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter
from matplotlib.transforms import blended_transform_factory


"""
    + inspect.getsource(tick_text)
    + r'''

def percent(value, _=None):
    return f"{100 * value:.6g}%"


def shown(text):
    """Text that matplotlib draws as it is, not as mathematics."""
    return text.replace("$", r"\$")


def column(rows, name, is_category=False):
    if is_category:
        return [shown(row[name]) for row in rows]
    return [float(row[name]) if row[name] else math.nan for row in rows]


def read(file):
    """The rows of the CSV, by the number of their series."""
    rows = {}
    with open(file, newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            # Texts that a spreadsheet would take for formulas have an apostrophe in the file.
            row = {name: re.sub(r"^'(?='*[=+\-@\t\r])", "", text) for name, text in row.items()}
            rows.setdefault(int(row["number"]), []).append(row)
    return rows


def panels(figure):
    """The axes of each plot, in a grid of their places."""
    places = FIGURE["panels"]
    starts = [sorted({panel[way][0] for panel in places}) for way in ("columns", "rows")]
    sizes = [
        [max(panel[way][1] - panel[way][0] for panel in places if panel[way][0] == start) for start in some]
        for way, some in zip(("columns", "rows"), starts)
    ]
    grid = figure.add_gridspec(
        len(sizes[1]), len(sizes[0]), width_ratios=sizes[0], height_ratios=sizes[1][::-1]
    )
    axes = []
    shared = {}
    for panel in places:
        if panel["over"] is not None:
            axes.append(axes[panel["over"]].twinx())
            continue
        row = len(starts[1]) - 1 - starts[1].index(panel["rows"][0])
        place = grid[row, starts[0].index(panel["columns"][0])]
        axes.append(figure.add_subplot(place, sharex=shared.get(panel["x_axis"])))
        shared.setdefault(panel["x_axis"], axes[-1])
    return axes


def draw(axes, style, rows, line_width):
    """Draw one series; return what stands for it in the legend."""
    rows = rows if style["rows"] is None else rows[style["rows"][0] : style["rows"][1]]
    transform = {}
    if style["is_share"]:
        transform = {"transform": blended_transform_factory(axes.transData, axes.transAxes)}
    if style["kind"] == "bars":
        return draw_bars(axes, style, rows, line_width)
    panel = FIGURE["panels"][style["panel"]]
    x, y = (column(rows, name, panel[name]["scale"] == "category") for name in ("x", "y"))
    low, high = column(rows, "low"), column(rows, "high")
    marker, has_line = style["marker"], style["has_line"]
    look = {
        "color": style["colour"],
        "linewidth": line_width * style["line_share"] if has_line else 0,
        "linestyle": style["dash"] if has_line else "none",
        "drawstyle": style["steps"],
        "marker": marker,
        "markersize": style["marker_pt"],
        "markerfacecolor": "none" if style["is_open"] else style["marker_colour"],
        "markeredgecolor": style["marker_colour"],
        "markeredgewidth": line_width * 0.75 if style["is_open"] or marker in ("|", "_") else 0,
    }
    if style["edge"]:
        look["markeredgecolor"], look["markeredgewidth"] = style["edge"]
    if marker and has_line and style["max_markers"]:
        look["markevery"] = max(1, math.ceil(len(x) / style["max_markers"]))
    if style["kind"] == "area":
        axes.fill(x, y, color=style["fill"], linewidth=0, **transform)
        return Patch(color=style["fill"], linewidth=0)
    else:
        handle = Line2D([], [], **look)
        if has_line or marker:
            if x:
                axes.plot(x, y, **look, **transform)
        elif style["fill"]:
            handle = Patch(color=style["fill"], linewidth=0)
    if style["error_bars"]:
        errors = [[b - a for a, b in zip(low, y)], [b - a for a, b in zip(y, high)]]
        axes.errorbar(x, y, yerr=errors, fmt="none", ecolor=style["colour"], elinewidth=line_width / 2)
    elif style["fill"] and x:
        step = {"steps-post": "post", "steps-pre": "pre", "steps-mid": "mid"}.get(style["steps"])
        area = {"facecolor": style["fill"], "linewidth": 0}
        if style["hatch"]:
            area.update(zip(("hatch", "edgecolor"), style["hatch"]))
        axes.fill_between(x, low, high, step=step, **area, **transform)
    return handle


def draw_bars(axes, style, rows, line_width):
    """Draw bars beside those of other series, or on top of them; return what the legend has for them."""
    bars = style["bars"]
    categories = bars["categories"]
    rows = [row for row in rows if row["x"] in categories]
    places, values = [categories.index(row["x"]) for row in rows], column(rows, "y")
    width = 0.8 / bars["of"]
    centres = [place + (bars["at"] - (bars["of"] - 1) / 2) * width for place in places]
    tops = axes.__dict__.setdefault("tops", {}) if bars["is_stacked"] else {}
    bases = [tops.get(place, 0.0) for place in places]
    for place, base, value in zip(places, bases, values):
        tops[place] = base + (0.0 if math.isnan(value) else value)
    draw_all = axes.barh if bars["is_horizontal"] else axes.bar
    start = "left" if bars["is_horizontal"] else "bottom"
    look = {"facecolor": style["marker_colour"], "linewidth": 0}
    if style["hatch"]:
        look.update(zip(("hatch", "edgecolor"), style["hatch"]))
    draw_all(centres, values, width, **look, **{start: bases})
    if style["error_bars"]:
        low, high = column(rows, "low"), column(rows, "high")
        errors = [[b - a for a, b in zip(low, values)], [b - a for a, b in zip(values, high)]]
        x, y, which = (
            (values, centres, "xerr") if bars["is_horizontal"] else (centres, values, "yerr")
        )
        axes.errorbar(x, y, fmt="none", ecolor=style["colour"], elinewidth=line_width / 2, **{which: errors})
    axis = axes.yaxis if bars["is_horizontal"] else axes.xaxis
    axis.set_ticks(range(len(categories)), [shown(category) for category in categories])
    n_plots = axes.get_subplotspec().get_gridspec().ncols
    is_narrow = sum(len(category) + 2 for category in categories) > 13 * axes.figure.get_figwidth() / n_plots
    if is_narrow and not bars["is_horizontal"]:
        axes.tick_params(axis="x", labelrotation=45)
    return Patch(**look)


def finish(axes, panel, log):
    """Scales, ranges, ticks and titles."""
    is_at_right = panel["over"] is not None
    axes.set_axisbelow(True)
    if not is_at_right:
        axes.grid(color="#e6e8ec", linewidth=0.5)
    for side in ("top", "left", "bottom") if is_at_right else ("top", "right"):
        axes.spines[side].set_visible(False)
    for which, spec in (("y", panel["y"]),) if is_at_right else (("x", panel["x"]), ("y", panel["y"])):
        axis = axes.xaxis if which == "x" else axes.yaxis
        is_log = spec["scale"] == "log" or (log and which == "y")
        set_limits = axes.set_xlim if which == "x" else axes.set_ylim
        if is_log:
            (axes.set_xscale if which == "x" else axes.set_yscale)("log")
            axis.set_minor_formatter(NullFormatter())
        elif spec["scale"] == "linear" and spec["ticks"] is None:
            axis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
        if spec["range"] and (spec["scale"] == "log" or not is_log):
            set_limits([10**end for end in spec["range"]] if is_log else spec["range"])
        elif not is_log and spec["scale"] == "linear":
            ends = [*(axes.get_xlim() if which == "x" else axes.get_ylim()), *spec["include"]]
            if spec["from_zero"]:
                ends = [0.0, *ends] if max(ends) > 0 and min(ends) > -0.06 * max(ends) else ends
                low = 0.0 if min(ends) > -0.06 * max(ends) else min(ends)
            else:
                low = min(ends)
            set_limits(low, max(ends))
        if spec["ticks"] is not None:
            texts = spec["tick_texts"] or [tick_text(tick) for tick in spec["ticks"]]
            axis.set_ticks(spec["ticks"], [shown(text) for text in texts])
        elif spec["scale"] != "category":
            axis.set_major_formatter(FuncFormatter(percent if spec["percent"] else tick_text))
        (axes.set_xlabel if which == "x" else axes.set_ylabel)(shown(spec["title"]))
        axis.set_visible(spec["visible"])
    if not panel["has_x"]:
        axes.xaxis.set_tick_params(labelbottom=False, length=0)
        axes.set_xlabel("")
        axes.spines["bottom"].set_visible(False)
    if not panel["y"]["visible"]:
        axes.spines["left"].set_visible(False)


def add_lines_and_texts(axes, number, line_width, font_size):
    """Reference lines and their texts, which do not change the ranges."""
    limits = axes.get_xlim(), axes.get_ylim()
    transforms = {False: axes.transData, True: axes.transAxes}

    def of(one):
        return blended_transform_factory(transforms[one["x_is_share"]], transforms[one["y_is_share"]])

    for area in FIGURE["areas"]:
        if area["panel"] == number:
            (left, right), (bottom, top) = area["x"], area["y"]
            axes.add_patch(
                Rectangle((left, bottom), right - left, top - bottom, facecolor=area["colour"], linewidth=0,
                          zorder=0, transform=of(area))
            )
    for line in FIGURE["lines"]:
        if line["panel"] == number:
            axes.add_line(
                Line2D(line["x"], line["y"], color=line["colour"], linestyle=line["dash"], zorder=1,
                       linewidth=line_width * line["line_share"], transform=of(line))
            )
    axes.set_xlim(limits[0])
    axes.set_ylim(limits[1])
    for text in FIGURE["texts"]:
        low, high = sorted(limits[1])
        if text["panel"] == number and (text["y_is_share"] or low <= text["y"] <= high):
            axes.text(text["x"], text["y"], shown(text["text"]), color=text["colour"], transform=of(text),
                      horizontalalignment=text["horizontal"], verticalalignment=text["vertical"],
                      fontsize=font_size * 0.9)


def in_lines(figure, label, width, font_size):
    """The text in lines that are not wider than so many pixels, and the width of the widest."""
    text = figure.text(0, 0, "", fontsize=font_size)
    room = max(1, len(label))
    while True:
        lines = textwrap.fill(label, room)
        text.set_text(shown(lines))
        widest = text.get_window_extent().width
        if widest <= width or room <= 4:
            break
        room = max(4, min(room - 1, int(room * width / widest)))
    text.remove()
    return lines, widest


def add_legend(figure, axes, handles, labels, place, width_in, font_size):
    if place == "none" or not labels:
        return
    em = font_size / 72 * figure.dpi
    room = width_in * figure.dpi * (1 if place == "below" else 0.4) - 4.5 * em  # beside its line and margins
    fitted = [in_lines(figure, label, room, font_size) for label in labels]
    lines = [label for label, _ in fitted]
    columns = max(1, min(len(lines), int((room + 5 * em) / (max(width for _, width in fitted) + 4.5 * em))))
    common = {"frameon": False, "handlelength": 1.5, "borderaxespad": 0.2}
    # The texts are set afterwards: matplotlib leaves out entries that begin with an underscore.
    names = [f"series {number}" for number in range(len(lines))]
    if place == "inside":
        legend = axes.legend(handles, names, loc="best", **common)
    elif place == "right":
        legend = figure.legend(handles, names, loc="outside right upper", **common)
    else:
        legend = figure.legend(handles, names, loc="outside lower left", ncols=columns, **common)
    for text, line in zip(legend.get_texts(), lines):
        text.set_text(shown(line))


def main():
    here = Path(__file__)
    parser = argparse.ArgumentParser(description="Redraws a figure from its CSV, as PDF and SVG.")
    parser.add_argument("csv", nargs="?", type=Path, default=here.with_suffix(".csv"))
    parser.add_argument("--output", type=Path, help="file without its ending; default: beside the CSV")
    parser.add_argument("--width", type=float, default=FIGURE["width_in"], help="in inches")
    parser.add_argument("--height", type=float, help="in inches; default: by width and panels")
    parser.add_argument("--font-size", type=float, default=8 if FIGURE["width_in"] < 8 else 14)
    parser.add_argument("--font", help="such as 'Times New Roman'; it must be installed")
    parser.add_argument("--line-width", type=float, default=FIGURE["line_width_pt"])
    parser.add_argument("--legend", choices=["below", "right", "inside", "none"], default=FIGURE["legend"])
    parser.add_argument("--title", default=FIGURE["title"])
    parser.add_argument("--log", action="store_true", default=FIGURE["log"], help="logarithmic vertical axes")
    options = parser.parse_args()
    rows = read(options.csv)
    style = {
        "font.size": options.font_size,
        "axes.labelsize": options.font_size,
        "axes.titlesize": options.font_size,
        "xtick.labelsize": options.font_size,
        "ytick.labelsize": options.font_size,
        "legend.fontsize": options.font_size,
        "axes.linewidth": 0.6,
        "hatch.linewidth": 0.5,
        "pdf.fonttype": 42,  # embedded as TrueType, which journals ask for
        "svg.fonttype": "path",
        "svg.hashsalt": "callboard",
    }
    if options.font:
        style["font.family"] = options.font
    with matplotlib.rc_context(style):
        n_rows = len({panel["rows"][0] for panel in FIGURE["panels"] if panel["y"]["visible"]})
        least = (9 * n_rows + 5) * options.font_size / 72 if n_rows > 1 else 0.0
        height = options.height or max(0.62 * options.width, least)
        figure = Figure(figsize=(options.width, height), layout="constrained", facecolor="white")
        FigureCanvasAgg(figure)
        every = panels(figure)
        handles, labels = [], []
        for series in FIGURE["series"]:
            handle = draw(every[series["panel"]], series, rows.get(series["number"], []), options.line_width)
            if series["label"] and series["label"] not in labels:
                handles.append(handle)
                labels.append(series["label"])
        for at, (axes, panel) in enumerate(zip(every, FIGURE["panels"])):
            finish(axes, panel, options.log)
            add_lines_and_texts(axes, at, options.line_width, options.font_size)
        if len(labels) > 1 or (labels and FIGURE["has_legend"]):
            add_legend(figure, every[0], handles, labels, options.legend, options.width, options.font_size)
        if options.title:
            room = 0.97 * options.width * figure.dpi
            title, _ = in_lines(figure, options.title, room, options.font_size)
            figure.suptitle(shown(title), fontsize=options.font_size)
        if options.height is None and figure.legends and options.legend == "below":
            figure.set_size_inches(options.width, height + 20)  # room for any legend
            figure.draw_without_rendering()
            legend = figure.legends[0].get_window_extent().height / figure.dpi
            figure.set_size_inches(options.width, height + legend)
        target = options.output or options.csv.with_suffix("")
        metadata = {"Title": FIGURE["title"] or None, "Subject": FIGURE["caption"] or None}
        figure.savefig(f"{target}.pdf", metadata={**metadata, "CreationDate": None})
        figure.savefig(f"{target}.svg", metadata={"Description": FIGURE["caption"] or None, "Date": None})
        print(f"{target}.pdf\n{target}.svg")


if __name__ == "__main__":
    main()
'''
)
