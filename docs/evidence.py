"""The page *Evidence*: each claim of the papers, what was run here, and whether the claim holds.

`measurements/evidence.toml` has the claims. Every number is computed from a file that is kept beside it: the
runs of a study, its README, or a table of measurements. So is the verdict, from comparisons of these numbers,
unless the claim gives one by hand with its reason.
"""

import csv
import math
import operator
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from backend.experiments.definitions import ITEMS, PAPERS
from backend.experiments.figures.words import in_tables
from backend.specs.environments import ENVIRONMENTS
from backend.statistics.estimates import Scores, median
from backend.statistics.means import means

MEASUREMENTS = Path(__file__).resolve().parent / "measurements"
VERDICTS = ("holds", "in part", "does not", "not tried")
MIN_SEEDS = 3
"""With fewer, their number stands beside the verdict."""
_RATE = "config.learning_rate"
_COMPARISON = re.compile(r"(\w+) (>=|<=|>|<) (?:([\d.]+) \* )?([a-z]\w*|-?[\d.]+)")
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le
}  # fmt: skip
_SIGNS = {">": ">", "<": "&lt;", ">=": "≥", "<=": "≤"}


@dataclass(frozen=True)
class Value:
    """A number of a row."""

    label: str
    number: float
    seeds: int
    """Different seeds of its runs, 1 where they have none."""
    runs: int
    low: float | None = None
    high: float | None = None
    """Ends of its 95 % interval, or the lowest and highest run where there are too few for one."""
    is_interval: bool = False


@dataclass(frozen=True)
class Row:
    """A claim with its verdict."""

    paper: str
    item: str
    """Of the definitions, or the id of a claim that none of their figures and tables has."""
    label: str
    """As in the paper: `Figure 2`."""
    claim: str
    place: str
    ran: str
    values: tuple[Value, ...]
    comparisons: tuple[tuple[str, bool], ...]
    verdict: str
    reason: str

    @property
    def seeds(self) -> int:
        """The fewest seeds of a number; 0 without numbers."""
        return min((value.seeds for value in self.values), default=0)

    @property
    def is_of_few_seeds(self) -> bool:
        """Whether its numbers are of fewer than `MIN_SEEDS` seeds."""
        return 0 < self.seeds < MIN_SEEDS


def rows() -> list[Row]:
    """Every claim, in the order of its paper's figures and tables."""
    claims = tomllib.loads((MEASUREMENTS / "evidence.toml").read_text("utf-8"))["claims"]
    order = {item: index for index, item in enumerate(ITEMS)}
    papers = list(PAPERS)
    return sorted(
        map(_row, claims), key=lambda row: (papers.index(row.paper), order.get(row.item, len(order)))
    )


def page() -> str:
    """The page in Markdown."""
    made = rows()
    parts = [
        "---\nhide: [toc]\n---\n",
        "# Evidence\n\nWhat the four papers claim, and what came of it here. Generated from "
        "`docs/measurements/evidence.toml` and from the files that it names: every number is computed from "
        "them. *Holds* stands where each comparison of a row is true, *in part* where some are, *does not* "
        "where none is; a verdict given by hand has its reason beside it. Nearly all runs are far smaller "
        "than the paper's: a verdict is about what was run here. In parentheses: the 95 % interval where it "
        "is named, else the lowest and the highest run. What differs from the paper stands on the page of "
        "each study.\n",
        f"{summary(made)}\n",
        table(
            ("paper", *VERDICTS, "claims"),
            [
                (paper.short, *_counts(of := [row for row in made if row.paper == paper.id]), str(len(of)))
                for paper in PAPERS.values()
            ],
        ),
    ]
    for paper in PAPERS.values():
        parts.append(f"## {paper.short}\n\n{paper.authors} ({paper.year}). *{paper.title}*.\n")
        of = [row for row in made if row.paper == paper.id]
        first = {row.item: row for row in reversed(of)}
        cells = [(_claim(row, is_first=first[row.item] is row), _result(row), _verdict(row)) for row in of]
        parts.append(table(("claim", "run here, and its result", "verdict"), cells))
    return "\n".join(parts)


def summary(made: Sequence[Row]) -> str:
    """The counts of verdicts in one sentence."""
    holds, in_part, does_not, not_tried = _counts(made)
    few = sum(row.is_of_few_seeds for row in made)
    return (
        f"Of {len(made)} claims {holds} hold in what was run here, {in_part} in part, {does_not} do not, and "
        f"{not_tried} were not tried; the numbers of {few} are from fewer than three seeds."
    )


def _counts(made: Sequence[Row]) -> tuple[str, ...]:
    counts = Counter(row.verdict for row in made)
    return tuple(str(counts[verdict]) for verdict in VERDICTS)


def _row(claim: Mapping[str, Any]) -> Row:
    data = claim.get("data", "")
    specs = claim.get("values", {})
    values: dict[str, Value] = {}
    for name, spec in specs.items():
        values[name] = _value(spec, data, values)
    comparisons = tuple(_compare(text, values) for text in claim.get("holds", ()))
    item = claim["item"]
    label = ITEMS[item][2].label if item in ITEMS else claim["label"]
    verdict, reason = _judge(claim, comparisons)
    return Row(
        paper=ITEMS[item][0].id if item in ITEMS else claim["paper"],
        item=item,
        label=label,
        claim=claim["claim"],
        place=claim["place"],
        ran=_ran(claim, data) if data else "–",
        values=tuple(values.values()),
        comparisons=comparisons,
        verdict=verdict,
        reason=reason,
    )


def _judge(claim: Mapping[str, Any], comparisons: Sequence[tuple[str, bool]]) -> tuple[str, str]:
    """Verdict and reason. A score that was not reached is not tried as long as no run had the paper's agent
    steps."""
    reason = claim.get("reason", "")
    true = [holds for _, holds in comparisons]
    if not true:
        if claim["verdict"] not in VERDICTS or not reason:
            raise ValueError(f"{claim['item']}: a verdict by hand is one of {VERDICTS}, with a reason")
        return claim["verdict"], reason
    if all(true):
        return "holds", reason
    if any(true):
        return "in part", reason
    if needed := claim.get("needs_agent_steps"):
        steps = max(float(run["agent_steps"]) for run in _selected(claim, claim["data"]))
        if steps < needed:
            return "not tried", f"{in_tables(steps)} of {in_tables(needed)} agent steps. {reason}".strip()
    return "does not", reason


def _compare(text: str, values: Mapping[str, Value]) -> tuple[str, bool]:
    """A comparison with labels in place of names, and whether it is true."""
    match = _COMPARISON.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no comparison")
    left, sign, factor, right = match.groups()
    other = values.get(right)
    number = float(right) if other is None else other.number
    times = float(factor or 1)
    words = f"{in_tables(times)} × " if factor else ""
    words += in_tables(number) if other is None else other.label
    return f"{values[left].label} {_SIGNS[sign]} {words}", _COMPARE[sign](values[left].number, times * number)


def _value(spec: Mapping[str, Any], data: str, before: Mapping[str, Value]) -> Value:
    """A number by one of the rules: those of `_OF_RUNS`, `printed`, which a study's README prints, and
    `ratio` of two numbers before it."""
    label, rule = spec["label"], spec["rule"]
    if rule == "ratio":
        above, below = (before[name] for name in spec["of"])
        return Value(
            label, above.number / below.number, min(above.seeds, below.seeds), min(above.runs, below.runs)
        )
    source = spec.get("data", data)
    runs = _runs(source, **spec.get("where", {}))
    if not runs:
        raise ValueError(f"{source} has no run with {spec.get('where')}")
    seeds, n = len({run.get("seed", "") for run in runs}), len(_ids(runs))
    if rule == "printed":
        return Value(label, _printed(source, spec["pattern"]), seeds, n)
    scores = np.array([float(run[_column(run, spec)]) for run in runs])
    rates = np.array([float(run.get(_RATE) or math.nan) for run in runs])
    return Value(label, _OF_RUNS[rule](scores, rates, spec.get("k", 1)), seeds, n, *_ends(rule, scores))


def _ends(rule: str, scores: Scores) -> tuple[float | None, float | None, bool]:
    """Ends of the interval of a mean or median, or of the range of runs, and whether it is an interval."""
    if rule not in ("mean", "median") or len(scores) < 2:
        return None, None, False
    if rule == "median":
        low, high = median(scores).low, median(scores).high
        if low is not None:
            return low, high, True
    else:
        mean, _, error = means(scores[:, None])
        half = float(error.half_ci[0])
        if not math.isnan(half):
            return float(mean[0]) - half, float(mean[0]) + half, True
    return float(scores.min()), float(scores.max()), False


def _good(scores: Scores, rates: Scores) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which runs lie in the upper half of the range of scores, and which have a rate between two of those."""
    good = scores >= (scores.min() + scores.max()) / 2
    return good, (rates >= rates[good].min()) & (rates <= rates[good].max())


def _good_decades(scores: Scores, rates: Scores, k: int) -> float:
    good, _ = _good(scores, rates)
    return math.log10(rates[good].max() / rates[good].min())


def _good_within(scores: Scores, rates: Scores, k: int) -> float:
    good, within = _good(scores, rates)
    return float(good[within].mean())


def _lowest_within_good(scores: Scores, rates: Scores, k: int) -> float:
    _, within = _good(scores, rates)
    return float((scores[within].min() - scores.min()) / (scores.max() - scores.min()))


_OF_RUNS: dict[str, Callable[[Scores, Scores, int], float]] = {
    "mean": lambda scores, rates, k: float(scores.mean()),
    "median": lambda scores, rates, k: median(scores).value,
    "best": lambda scores, rates, k: float(scores.max()),
    "lowest": lambda scores, rates, k: float(scores.min()),
    "last": lambda scores, rates, k: float(scores[-1]),
    "mean_of_best": lambda scores, rates, k: float(np.sort(scores)[-k:].mean()),
    "spread": lambda scores, rates, k: float((scores.max() - scores.min()) / scores.max()),
    "good_decades": _good_decades,
    "good_within": _good_within,
    "lowest_within_good": _lowest_within_good,
}  # fmt: skip
"""By name, a number of runs: scores, or another column's values; their learning rates; k of `mean_of_best`.

- `spread`: the difference of the highest and the lowest, by the highest.
- `good_decades`: from the lowest to the highest rate of runs in the upper half of the range of scores.
- `good_within`: the share of those runs among all whose rates lie between.
- `lowest_within_good`: the lowest of these; 0 is the lowest run of all, 1 the highest.
"""


def _column(run: Mapping[str, str], spec: Mapping[str, Any]) -> str:
    """The column of a number; `score` in exports since 0.2.0 is `training_score`."""
    column: str = spec.get("column", "score")
    return "training_score" if column == "score" and column not in run else column


def _selected(claim: Mapping[str, Any], data: str) -> list[dict[str, str]]:
    """The runs of all numbers of a claim, without those of other files."""
    chosen: dict[int, dict[str, str]] = {}
    for spec in claim.get("values", {}).values():
        if spec["rule"] != "ratio" and spec.get("data", data) == data:
            chosen |= {id(run): run for run in _runs(data, **spec.get("where", {}))}
    return list(chosen.values())


def _runs(data: str, **where: str) -> list[dict[str, str]]:
    """Finished runs of a folder or a table that have these values."""
    return [
        run
        for run in _table_of(data)
        if run.get("state", "finished") == "finished"
        and run.get("changed", "False") == "False"
        and all(run[name] == value for name, value in where.items())
    ]


@cache
def _table_of(data: str) -> list[dict[str, str]]:
    path = MEASUREMENTS / data
    with (path if path.is_file() else path / "runs.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _ids(runs: Sequence[Mapping[str, str]]) -> set[str]:
    """Runs, of which a table can have several rows."""
    return {run.get("run", str(index)) for index, run in enumerate(runs)}


def _printed(data: str, pattern: str) -> float:
    """The number that the README of a study prints, which the files beside it do not have."""
    match = re.search(pattern, (MEASUREMENTS / data / "README.md").read_text("utf-8"))
    if match is None:
        raise ValueError(f"{data}/README.md has no {pattern!r}")
    return float(match[1].replace("−", "-").replace(",", ""))


def _ran(claim: Mapping[str, Any], data: str) -> str:
    """Method, environment, budget and protocol, with a link to the study."""
    folder = (MEASUREMENTS / data).is_dir()
    runs = _selected(claim, data) or _runs(data)
    words = [claim["method"]] if "method" in claim else []
    if folder and "method" not in claim:
        words.append(_listed(dict.fromkeys(run["arm"] for run in runs)))
    ids = dict.fromkeys(run["environment"] for run in runs if "environment" in run)
    words += [ENVIRONMENTS[name].title for name in ids]
    steps = [float(run["agent_steps"]) for run in runs if run.get("agent_steps")]
    if steps:
        n = len(_ids(runs))
        low, high = in_tables(min(steps)), in_tables(max(steps))
        budget = high if low == high or n == 1 else f"{low} to {high}"
        words.append(f"{n} run{'s' * (n > 1)} of {budget} agent steps")
    specs = claim.get("values", {}).values()
    is_training = any(spec["rule"] not in ("printed", "ratio") and "column" not in spec for spec in specs)
    if protocol := claim.get("protocol", "scores of the last 100 training episodes" if is_training else ""):
        words.append(protocol)
    page = f"{data}/README" if folder else Path(data).stem.partition("-")[0]
    scale = claim.get("scale") or _scale(data)
    return f"[{scale}](../measurements/{page}.md): {'; '.join(words)}"


def _scale(data: str) -> str:
    """The scale that the README of a study states."""
    match = re.search(r"at the scale (\w+)", (MEASUREMENTS / data / "README.md").read_text("utf-8"))
    if match is None:
        raise ValueError(f"{data}/README.md states no scale")
    return f"scale {match[1]}"


def _listed(names: Mapping[str, None]) -> str:
    arms = [f"`{name}`" for name in names]
    return ", ".join(arms) if len(arms) <= 6 else f"{arms[0]} to {arms[-1]}"


def _claim(row: Row, *, is_first: bool) -> str:
    """Where the paper has it, and the claim; the first row of an item has its anchor."""
    label = f'<span id="{row.item}">**{row.label}**</span>' if is_first else f"**{row.label}**"
    place = f", {row.place}" if row.place else ""
    return f"{label}{place}<br>{row.claim}"


def _result(row: Row) -> str:
    if not row.values:
        return row.ran
    sizes = {value.runs for value in row.values}
    numbers = []
    for value in row.values:
        text = f"{value.label}: **{in_tables(value.number)}**"
        if value.low is not None and value.high is not None:
            kind = "95 % CI " if value.is_interval else ""
            text += f" ({kind}{in_tables(value.low)} to {in_tables(value.high)})"
        numbers.append(text if len(sizes) == 1 else f"{text}, n = {value.runs}")
    if len(sizes) == 1:
        numbers.append(f"n = {sizes.pop()}{' each' * (len(row.values) > 1)}")
    lines = [row.ran, "; ".join(numbers)]
    for word, wanted in (("True", True), ("Not true", False)):
        if texts := [text for text, holds in row.comparisons if holds is wanted]:
            lines.append(f"*{word}: {'; '.join(texts)}*")
    return "<br>".join(lines)


def _verdict(row: Row) -> str:
    few = f", *{('one seed', 'two seeds')[row.seeds - 1]}*" if row.is_of_few_seeds else ""
    return f"**{row.verdict}**{few}" + (f"<br>{row.reason}" if row.reason else "")


def table(head: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
