"""The best scores of finished runs beside published ones, by environment and algorithm."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy.orm import Session

from backend.analysis.scores import repository
from backend.analysis.scores.candidates import Candidate, best_candidates
from backend.analysis.scores.cells import (
    _REFERENCES,
    normalise_runs,
    our_cell,
    persons_cell,
    published_cell,
    reference_of,
    sources_of,
)
from backend.analysis.scores.schemas import (
    FigureId,
    ScoreCell,
    ScoreColumn,
    ScoreFoot,
    ScoreProtocol,
    ScoreRow,
    Scores,
)
from backend.db.engine import caches_of
from backend.drawing.figure import Figure
from backend.drawing.palette import Theme
from backend.drawing.panels import Frame
from backend.drawing.profiles import gaps_figure, profile_figure
from backend.platform.caching import CacheKind
from backend.platform.errors import Invalid
from backend.replays.recordings.service import PersonsMean, human_references
from backend.runs.catalogue import service as catalogue
from backend.runs.catalogue.schemas import EnvironmentOut
from backend.specs.algorithms import ALGORITHMS
from backend.specs.problems import quoted
from backend.specs.protocols import PROTOCOLS, protocol_title, starts_protocol
from backend.statistics.across import across_environments
from backend.statistics.cells import Cell, Reduction
from backend.statistics.profiles import TARGET, profiles

PUBLISHED = "published:"
"""Beginning of the ids of published columns."""
HUMAN_HERE = "human_here"
"""Id of the column of people's means."""
RULE = (
    "Mean of the last evaluations of the finished runs of a configuration, one run for each seed; of several "
    "configurations that with the highest mean, of those whose runs have all finished if there are any"
)

KEPT_TABLES = 16
"""Maximum number of tables kept for a database, of the latest requests; each has a megabyte or so."""

_DEFAULT_PROTOCOL = "noop_starts"


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """The scores of a request, and what figures of it need."""

    scores: Scores
    runs: Mapping[tuple[str, str], list[float]]
    """By shown column and environment of the table's protocol, the human-normalised scores of the runs of an
    algorithm; published scores are means, and not among them."""


class _Source(NamedTuple):
    """All that tables are built from: equal sources have equal tables."""

    revisions: Sequence[tuple[str, int]]
    parents: Sequence[tuple[str, str | None]]
    environments: Mapping[str, EnvironmentOut]
    people: Mapping[str, PersonsMean]
    """People's means, by environment."""


_TABLES = CacheKind[tuple[str | None, tuple[str, ...], int], tuple[_Source, ScoreTable]](KEPT_TABLES)
"""By request, the latest table and what it was built from."""


def read_table(
    session: Session, protocol: str | None = None, columns: Sequence[str] = (), min_seeds: int = 1
) -> ScoreTable:
    """The table of `build_table`, which is built again only after a change of what it is built from.

    Raises:
        Invalid: there is no such protocol or column.
    """
    tables = caches_of(session)[_TABLES]
    # Before the scores: what changes in between belongs to a later source.
    source = _Source(
        repository.revisions(session),
        repository.parents(session),
        catalogue.environments(session),
        human_references(session),
    )
    request = (protocol, tuple(columns), min_seeds)
    built_from, table = tables.known([request]).get(request, (None, None))
    if table is None or built_from != source:
        table = build_table(session, source.environments, source.people, protocol, columns, min_seeds)
        tables.put({request: (source, table)})
    return table


def build_table(
    session: Session,
    environments: Mapping[str, EnvironmentOut],
    people: Mapping[str, PersonsMean],
    protocol: str | None = None,
    columns: Sequence[str] = (),
    min_seeds: int = 1,
) -> ScoreTable:
    """Every environment with each algorithm's best configuration beside the published scores.

    Args:
        session: a reading session.
        environments: every environment, by id.
        people: people's means, by environment.
        protocol: the protocol of environments that have it; by default the one with the most scored
            runs, start sets excepted. The other environments are shown under their own and are in no
            summary.
        columns: ids of the shown columns; empty for all.
        min_seeds: how many runs a score needs at least.

    Raises:
        Invalid: there is no such protocol or column.
    """
    if protocol is not None and protocol not in PROTOCOLS and starts_protocol(protocol) is None:
        raise Invalid.field(
            "protocol", f"unknown protocol {quoted(protocol)}; use one of {_join_names(PROTOCOLS)}"
        )
    scored = repository.last_scores(session)
    counts = Counter(score.protocol for score in scored)
    chosen = protocol or _most_used(counts)
    scored_environments = {score.run.environment for score in scored if score.protocol == chosen}
    # The chosen one where runs have scores under it, even a start set's; else what the environment offers.
    protocols = {
        name: chosen if name in scored_environments else _protocol_of(environment, chosen)
        for name, environment in environments.items()
    }
    references = {
        name: reference_of(environment, protocols[name]) for name, environment in environments.items()
    }
    best = best_candidates(session, scored, protocols, min_seeds)
    heads = _columns(environments, protocols, best, people, columns)
    shown = [head for head in heads if head.shown]

    def cell(head: ScoreColumn, environment: EnvironmentOut) -> ScoreCell | None:
        name = environment.id
        if head.source == "ours":
            candidate = best.get((name, head.id))
            return None if candidate is None else our_cell(candidate, references[name])
        if head.source == "people":
            return None if name not in people else persons_cell(people[name])
        label = head.id.removeprefix(PUBLISHED)
        return published_cell(environment, label, protocols[name], references[name])

    rows = [
        ScoreRow(
            environment=name,
            title=environment.title,
            family=environment.family,
            protocol=protocols[name],
            references=sources_of(environment, protocols[name]) if references[name] is not None else "",
            cells=[cell(head, environment) for head in shown],
            runnable=_runnable(environment, protocols[name]),
        )
        for name, environment in environments.items()
    ]
    normalised_runs = {
        (head.id, name): normalise_runs(candidate, reference)
        for name, reference in references.items()
        for head in shown
        if head.source == "ours" and protocols[name] == chosen and reference is not None
        if (candidate := best.get((name, head.id))) is not None and candidate.comparable
    }
    rows_of_chosen = [row for row in rows if row.protocol == chosen]
    plain, plain_environments = _summarise_columns(rows_of_chosen, shown, is_normalised=False)
    normalised, normalised_environments = _summarise_columns(rows_of_chosen, shown, is_normalised=True)
    scores = Scores(
        protocol=chosen,
        protocol_title=protocol_title(chosen),
        protocols=_protocols(environments, counts, chosen),
        rule=RULE,
        columns=heads,
        rows=rows,
        foot=[
            ScoreFoot(name=name, values=values, normalised=normalised[name])
            for name, values in plain.items()
            if plain_environments
        ],
        foot_environments=plain_environments,
        normalised_environments=normalised_environments,
    )
    return ScoreTable(scores, normalised_runs)


@dataclass(frozen=True)
class DrawnScores:
    """A figure of the human-normalised scores."""

    figure: Figure
    caption: str
    environments: list[str]
    optimality_gaps: dict[str, float]
    """By title of the algorithm."""

    @property
    def text(self) -> str:
        """The caption and the optimality gaps as sentences, for a file of the figure."""
        gaps = ", ".join(f"{title} {gap:.3g} %" for title, gap in self.optimality_gaps.items())
        return f"{self.caption}. Optimality gap: {gaps}." if gaps else f"{self.caption}."


_TITLES: dict[FigureId, str] = {"profile": "Performance profile", "optimality_gap": "Optimality gap"}


def draw(table: ScoreTable, figure: FigureId, *, theme: Theme, width_px: int | None) -> DrawnScores:
    """The performance profiles or the optimality gaps of the shown algorithms."""
    titles = {column.id: column.title for column in table.scores.columns}
    arms = [column.title for column in table.scores.columns if column.shown and column.source == "ours"]
    scores = {(titles[name], environment): values for (name, environment), values in table.runs.items()}
    over = profiles(scores, arms)
    # Each algorithm keeps its style when columns are left out.
    styles = {algorithm.title: at for at, algorithm in enumerate(ALGORITHMS.values())}
    frame = Frame(_TITLES[figure], arms, theme, width_px, styles)
    drawing = (
        profile_figure(over.arms, x="Human-normalised score (%)", target=TARGET, frame=frame)
        if figure == "profile"
        else gaps_figure(over.arms, frame=frame)
    )
    n = len(over.environments)
    caption = (
        f"Human-normalised last evaluations of each algorithm's best configuration under "
        f"{table.scores.protocol_title}, each environment with the same weight, over the same {n} "
        f"environment{'s' if n != 1 else ''}; {sum(profile.n_runs for profile in over.arms)} runs"
    )
    return DrawnScores(
        figure=drawing,
        caption=caption,
        environments=list(over.environments),
        optimality_gaps={profile.arm: profile.optimality_gap for profile in over.arms},
    )


def _most_used(counts: Counter[str]) -> str:
    """The protocol with the most scored runs; not a start set, which is of one game."""
    return max(
        (name for name in counts if starts_protocol(name) is None),
        key=lambda name: (counts[name], name == _DEFAULT_PROTOCOL, name),
        default=_DEFAULT_PROTOCOL,
    )


def _protocol_of(environment: EnvironmentOut, chosen: str) -> str:
    """The chosen protocol, if agents or published scores have it here; else the environment's own."""
    known = {*environment.evaluation_protocols, *(score.protocol for score in environment.published)}
    return chosen if chosen in known else environment.evaluation_protocol


def _runnable(environment: EnvironmentOut, protocol: str) -> list[str]:
    if protocol not in environment.evaluation_protocols:
        return []
    return [
        algorithm.id
        for algorithm in ALGORITHMS.values()
        if environment.observation in algorithm.observations and environment.actions in algorithm.actions
    ]


def _columns(
    environments: Mapping[str, EnvironmentOut],
    protocols: Mapping[str, str],
    best: Mapping[tuple[str, str], Candidate],
    people: Mapping[str, PersonsMean],
    wanted: Sequence[str],
) -> list[ScoreColumn]:
    """Every column; `wanted` are shown, or all.

    Raises:
        Invalid: one of `wanted` does not exist.
    """
    published = Counter(
        score.label
        for name, environment in environments.items()
        for score in environment.published
        if score.protocol == protocols[name]
    )
    ours = Counter(algorithm for _, algorithm in best)
    labels = [label for label in _REFERENCES if label in published]
    others = [label for label in published if label not in _REFERENCES]
    heads = [
        *((PUBLISHED + label, label, "published", published[label]) for label in labels),
        *([(HUMAN_HERE, "human", "people", len(people))] if people else []),
        # The random agent beside the published one.
        *(
            (algorithm.id, algorithm.title, "ours", ours[algorithm.id])
            for algorithm in sorted(ALGORITHMS.values(), key=lambda known: known.learns)
        ),
        *((PUBLISHED + label, label, "published", published[label]) for label in others),
    ]
    known = [name for name, *_ in heads]
    # A column of another protocol is no error: which published agents there are changes with it.
    every = {
        PUBLISHED + score.label for environment in environments.values() for score in environment.published
    } | {HUMAN_HERE, *known}
    for at, name in enumerate(wanted):
        if name not in every:
            raise Invalid.field(
                f"column.{at}", f"unknown column {quoted(name)}; use one of {_join_names(known)}"
            )
    return [
        ScoreColumn.model_validate(
            {"id": name, "title": title, "source": source, "shown": not wanted or name in wanted, "n": n}
        )
        for name, title, source, n in heads
    ]


def _protocols(
    environments: Mapping[str, EnvironmentOut], counts: Counter[str], chosen: str
) -> list[ScoreProtocol]:
    used = {score.protocol for environment in environments.values() for score in environment.published}
    used |= {chosen, *counts, *(environment.evaluation_protocol for environment in environments.values())}
    return [
        ScoreProtocol(id=name, title=protocol_title(name), n_runs=counts[name])
        for name in (*PROTOCOLS, *sorted(used - PROTOCOLS.keys()))
        if name in used
    ]


def _summarise_columns(
    rows: Sequence[ScoreRow], columns: Sequence[ScoreColumn], *, is_normalised: bool
) -> tuple[dict[str, list[float | None]], list[str]]:
    """Mean, median and IQM of each column over the same environments, and the ids of these."""
    cells = [
        Cell(column.id, row.environment, value, None, None, 0, 0, (), "")
        for at, column in enumerate(columns)
        for row in rows
        if (value := _foot_value(row.cells[at], is_normalised=is_normalised)) is not None
    ]
    across = {
        summary.arm: summary for summary in across_environments(Reduction(tuple(cells), "score", "", ""))
    }
    values = {
        name: [getattr(across[column.id], name) if column.id in across else None for column in columns]
        for name in ("mean", "median", "iqm")
    }
    environments = next(iter(across.values())).environments if across else ()
    return values, list(environments)


def _foot_value(cell: ScoreCell | None, *, is_normalised: bool) -> float | None:
    if cell is None or not cell.comparable:
        return None
    return cell.normalised if is_normalised else cell.value


def _join_names(names: Sequence[str] | Mapping[str, object]) -> str:
    return ", ".join(names)
