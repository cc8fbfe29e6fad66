"""What captions, findings and headings say, in words that several kinds of figures share."""

import math
from collections.abc import Collection
from decimal import ROUND_HALF_UP, Context

import numpy as np

from backend.drawing.catalogue import describe
from backend.experiments.figures.runs import FigureRuns
from backend.experiments.specs.study import ReductionRule
from backend.specs.protocols import protocol_title, starts_protocol
from backend.statistics.cells import Reduction, runs_in

MAX_SETS = 3
"""Start sets that a caption or a heading names."""
_TIMES = ((3600.0, "h"), (60.0, "min"), (1.0, "s"))
"""Units of times: seconds and symbol, the longest first."""


def in_tables(value: float | None) -> str:
    """A value as the tables of pages write it: whole numbers in full, others with four significant digits and
    from a thousand on with six, halves rounded up; below 0.001 and from 1e9 on in scientific notation. Signs
    are minus signs, not hyphens.
    """
    number = float(value or 0.0)
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "∞" if number > 0 else "−∞"
    size = abs(number)
    if size != 0 and not 1e-3 <= size < 1e9:
        digits, _, exponent = f"{size:.3e}".partition("e")
        text = f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}".replace("-", "−")
    elif number.is_integer():
        text = f"{size:,.0f}"
    else:  # of the decimal digits: 44.985 is stored as slightly less
        rounded = Context(prec=6 if size >= 1000 else 4, rounding=ROUND_HALF_UP).create_decimal(repr(size))
        text = f"{float(rounded):,.10g}"
    return f"−{text}" if number < 0 else text


def finite_or_none(value: float | None) -> float | None:
    """The value; None if it is not finite."""
    return value if value is not None and np.isfinite(value) else None


def highest_and_lowest(runs: FigureRuns, reduction: Reduction, of: str = "") -> str:
    """Which arm has the highest and the lowest value on each environment; `of`: what the values are."""
    unit = {"%": " %", "s": " s", "ratio": "×"}.get(reduction.unit, "")
    is_time = reduction.unit in ("s", "agent steps")
    sentences = []
    for environment in runs.spec.environments:
        known = [
            cell
            for cell in reduction.cells
            if cell.environment == environment and finite_or_none(cell.value) is not None
        ]
        if not known:
            continue
        first = max(known, key=lambda cell: cell.value or 0.0)
        last = min(known, key=lambda cell: cell.value or 0.0)
        if is_time:
            first, last = last, first
        text = f"{first.arm} with {in_tables(first.value)}{unit}"
        if len(known) > 1:
            best, worst = ("fastest", "slowest") if is_time else ("highest", "lowest")
            text = f"{best} {text}, {worst} {last.arm} with {in_tables(last.value)}{unit}"
        sentences.append(f"{runs.title(environment)}{of and f', {of}'}: {text}.")
    return " ".join(sentences)


def scores_of_runs(rule: ReductionRule, n_in: int, n_planned: int) -> str:
    """The caption of a figure that shows the score of each run."""
    score = "last evaluation" if rule.source == "evaluations" else "last training score"
    return f"{score} of each run; {runs_in(n_in, n_planned)}"


def left_out_curves(n_drawn: int, n_curves: int) -> list[str]:
    """Which curves are drawn; empty if all are."""
    return [f"the first {n_drawn} of {n_curves:,} curves are drawn"] if n_curves > n_drawn else []


def time_unit(longest_s: float) -> tuple[float, str]:
    """The unit of training times, in seconds, and its symbol: the longest that the longest time fills."""
    return next((known for known in _TIMES if longest_s >= known[0]), _TIMES[-1])


def time_title(unit: str) -> str:
    """The title of an axis of training times."""
    return f"Training time ({unit})"


def value_title(reduction: Reduction) -> str:
    """The title of an axis of reduced values."""
    return {"score": "Score", "%": "Normalised score (%)", "s": time_title("s"), "ratio": "Ratio"}.get(
        reduction.unit, describe(reduction.unit).axis
    )


def protocols_title(protocols: Collection[str]) -> str:
    """Protocols in words; of many start sets without their names."""
    titles = {protocol_title(protocol) for protocol in protocols}
    if len(titles) > MAX_SETS:
        parsed = {protocol: starts_protocol(protocol) for protocol in protocols}
        titles = {
            protocol_title(name if starts_of is None else starts_of.base)
            for name, starts_of in parsed.items()
        }
    return ", ".join(sorted(titles))
