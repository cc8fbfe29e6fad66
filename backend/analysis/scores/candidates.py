"""Configurations of runs that have a score, and the best of them in each environment."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlalchemy.orm import Session

from backend.analysis.scores import repository
from backend.analysis.scores.repository import LastScore
from backend.runs.runs.groups import (
    Brief,
    Specs,
    compute_once,
    is_specified_as_published,
    keys_of,
    surplus_runs,
)
from backend.runs.runs.repository import lineage_roots, specs_of
from backend.specs.environments import ENVIRONMENTS, Environment
from backend.statistics.cells import Cell
from backend.statistics.members import EvaluationScore, MemberRun
from backend.statistics.reducers import Last


@dataclass(frozen=True)
class Candidate:
    """A configuration with a score in an environment."""

    cell: Cell
    runs: Sequence[LastScore]
    """Its counted runs, the latest first."""
    comparable: bool
    n_broken_off: int = 0
    """Number of its runs that failed, were lost or were stopped."""
    n_configurations: int = 1


def best_candidates(
    session: Session, scored: Sequence[LastScore], protocols: Mapping[str, str], min_seeds: int
) -> dict[tuple[str, str], Candidate]:
    """The configuration with the highest mean, by environment and algorithm; one that was observed as
    published scores were comes before any other."""
    used = [score for score in scored if protocols.get(score.run.environment) == score.protocol]
    briefs = [score.run for score in used]
    specs = specs_of(session)
    lineages, ids = lineage_roots(session, briefs), {run.id for run in briefs}
    surplus = surplus_runs(briefs, lineages, ids, partial(keys_of, specs=specs))
    keys = keys_of(briefs, specs)
    broken = repository.broken_off(session)
    broken_keys = keys_of(broken, specs)
    n_broken_off = Counter((run.environment, run.algorithm, broken_keys[run.id]) for run in broken)
    members: dict[tuple[str, str, str], list[LastScore]] = defaultdict(list)
    for score in used:
        if score.run.id not in surplus:
            members[score.run.environment, score.run.algorithm, keys[score.run.id]].append(score)
    counted = {place: scores for place, scores in members.items() if len(scores) >= min_seeds}
    comparable = _comparable([scores[0] for scores in counted.values()], specs)
    candidates: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    for (environment, algorithm, key), scores in counted.items():
        is_comparable = comparable[scores[0].run.id]
        candidates[environment, algorithm].append(
            Candidate(
                _reduce(algorithm, environment, scores),
                scores[::-1],
                is_comparable,
                n_broken_off[environment, algorithm, key],
            )
        )
    best = {}
    for place, several in candidates.items():
        first = max(
            several,
            key=lambda candidate: (
                candidate.comparable,
                not candidate.n_broken_off,
                candidate.cell.value or 0.0,
                candidate.cell.n,
            ),
        )
        alike = sum(candidate.comparable == first.comparable for candidate in several)
        best[place] = replace(first, n_configurations=alike)
    return best


def _reduce(algorithm: str, environment: str, scores: Sequence[LastScore]) -> Cell:
    """The mean of the last evaluations, by the rule that studies use."""
    runs = [
        MemberRun(
            arm=algorithm,
            environment=environment,
            draw=number,
            evaluations=(
                EvaluationScore(score.agent_steps, score.wall_time_s, score.score, score.n_episodes),
            ),
        )
        for number, score in enumerate(scores)
    ]
    [cell] = Last("evaluations").reduce(runs).cells
    return cell


def _comparable(scored: Sequence[LastScore], specs: Specs) -> dict[str, bool]:
    """Whether each score can be compared with published ones, by the id of its run."""
    runs: dict[tuple[str, str], list[Brief]] = defaultdict(list)
    for score in scored:
        runs[score.run.environment, score.protocol].append(score.run)
    comparable: dict[str, bool] = {}
    for (name, protocol), alike in runs.items():
        if (environment := ENVIRONMENTS.get(name)) is None:
            comparable |= dict.fromkeys((run.id for run in alike), True)
            continue

        def compute(run: Brief, at: Environment = environment, under: str = protocol) -> bool:
            return is_specified_as_published(run.spec, at, under)

        comparable |= compute_once(alike, f"as published under {protocol}", compute, specs)
    return comparable
