"""The page docs/constants.md: `python -m backend.runs.catalogue.constants_page > docs/constants.md`."""

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from backend.specs import constants
from backend.specs.algorithms import ALGORITHMS, Algorithm
from backend.specs.algorithms.common import CROPPED_GAMES
from backend.specs.constants import Source
from backend.specs.environments import ENVIRONMENTS
from backend.specs.fields import Strict

_HEAD = """# Constants

The default of every hyperparameter, and its value in the papers. This page is generated from the specs by
`python -m backend.runs.catalogue.constants_page`; a test compares it with them, and every default with
literals that were copied from the papers by hand. **≠** marks a default that differs from the paper's value,
with the reason. A dash stands for a value that no paper states.

Sources are named by first author and year; the paper of each method stands below its title. S7, S8 and S9 are
sections of the supplement of Mnih 2016; *code* is the published code of the paper's authors, used where the
paper states no value. Where that code has other values than the paper prints, they
have a column.

The defaults are for Atari. The results with them, and with the presets for small machines, are in
[RESULTS.md](../RESULTS.md): no paper's score has been reproduced with the paper's constants.
"""
_COLUMNS = ("setting", "symbol", "default", "paper", "", "source", "note")
_CODE_COLUMN = "authors' code"

_INITIAL_G = """## RMSProp's first steps

RMSProp divides each gradient by the root of g + epsilon. No paper states g before the first update. Here it
is 0; in TensorFlow's `RMSPropOptimizer`, which the authors of PAAC and GA3C use, it is 1. With their epsilon
of 0.1 the first steps from 0 are sqrt(1.1 / 0.1) = 3.3 times larger where gradients are small; the initial
value of g decays, by half in 69 updates. `rmsprop_initial_g` sets it; PAAC's preset *As in the authors' code*
and GA3C's *As in the paper* start at 1. With PAAC's constants on Breakout and Pong, two million agent steps
with one seed each show no difference ([measurements](measurements/hyperparameters.md)).
"""
_VECTORS = """## Small environments with vector observations

The papers do not train in such environments. These defaults, which replace those above, learn CartPole on
two cores.
"""


def page() -> str:
    """The page, in Markdown."""
    parts = [_HEAD]
    for algorithm in ALGORITHMS.values():
        parts.append(f"## {algorithm.title} (`{algorithm.id}`)\n\n{algorithm.paper}.\n")
        defaults = algorithm.config().model_dump(mode="json")
        parts.append(_table(algorithm.config, defaults, algorithm.sources, algorithm.authors_code))
        if algorithm.continuous_defaults:
            parts.append(
                f"### {algorithm.title}, continuous actions\n\nWhat differs from the defaults above.\n"
            )
            parts.append(
                _table(algorithm.config, algorithm.continuous_defaults, algorithm.continuous_sources)
            )
    atari = ENVIRONMENTS[CROPPED_GAMES[0]]
    parts.append("## Atari games\n")
    parts.append(_table(atari.config, atari.config().model_dump(mode="json"), constants.ATARI_SOURCES))
    hopper = ENVIRONMENTS["Hopper-v5"]
    parts.append("## MuJoCo, state observations\n")
    parts.append(_table(hopper.config, hopper.config().model_dump(mode="json"), constants.MUJOCO_SOURCES))
    parts.append("## Not settings\n")
    parts.append(
        _rows(("constant", "value", "source"), ((f.name, f.value, f.where) for f in constants.FIXED))
    )
    parts += [_INITIAL_G, _VECTORS, _vector_table(ALGORITHMS.values())]
    return "\n".join(parts)


def _table(
    model: type[Strict],
    values: Mapping[str, Any],
    sources: Mapping[str, Source],
    authors_code: Mapping[str, Any] | None = None,
) -> str:
    """The settings' rows; `authors_code`, if there is any, is a column after the paper's."""
    properties = model.model_json_schema()["properties"]
    code = authors_code or {}
    return _rows(
        (*_COLUMNS[:4], _CODE_COLUMN, *_COLUMNS[4:]) if code else _COLUMNS,
        (
            (
                f"`{name}`",
                properties[name].get("symbol", ""),
                _shown(value),
                _shown(sources[name].printed(value)),
                *([_shown(code.get(name, sources[name].printed(value)))] if code else []),
                "≠" if differs(value, sources[name]) else "",
                sources[name].where,
                sources[name].note,
            )
            for name, value in values.items()
        ),
    )


def differs(default: Any, source: Source) -> bool:
    """Whether the default is not the value that the source prints."""
    return source.value is not None and source.printed(default) != default


def _vector_table(algorithms: Iterable[Algorithm]) -> str:
    return _rows(
        ("algorithm", "defaults"),
        (
            (a.title, ", ".join(f"`{name}` {_shown(value)}" for name, value in a.vector_defaults.items()))
            for a in algorithms
            if a.vector_defaults
        ),
    )


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.12g}"
    return str(value)


def _rows(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [columns, ("---",) * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
