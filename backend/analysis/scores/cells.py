"""Cells of the table of scores."""

from backend.analysis.scores.candidates import Candidate
from backend.analysis.scores.schemas import (
    ScoreCell,
)
from backend.replays.recordings.service import PersonsMean
from backend.runs.catalogue.schemas import EnvironmentOut
from backend.specs.environments import ENVIRONMENTS
from backend.specs.play import HUMAN_PLAY, seen_by_people
from backend.statistics.reducers import Reference, normalise

_REFERENCES = ("random", "human")


def our_cell(candidate: Candidate, reference: Reference | None) -> ScoreCell:
    """The cell of a configuration of runs here."""
    cell, runs = candidate.cell, candidate.runs
    steps = [score.agent_steps for score in runs]
    levels = reference if candidate.comparable else None
    return ScoreCell(
        value=cell.value,
        low=cell.low,
        high=cell.high,
        normalised=_normalise(cell.value, levels),
        normalised_low=_normalise(cell.low, levels),
        normalised_high=_normalise(cell.high, levels),
        comparable=candidate.comparable,
        rule=cell.caption.partition(";")[0]
        + (f"; {candidate.n_broken_off} more broke off" if candidate.n_broken_off else ""),
        runs=[score.run.id for score in runs],
        n_configurations=candidate.n_configurations,
        n_episodes=min(score.n_episodes for score in runs),
        min_agent_steps=min(steps),
        max_agent_steps=max(steps),
        wall_time_s=sum(score.wall_time_s for score in runs) / len(runs),
    )


def published_cell(
    environment: EnvironmentOut, label: str, protocol: str, reference: Reference | None
) -> ScoreCell | None:
    """The published score of this label under the protocol; None without one."""
    for score in environment.published:
        if (score.label, score.protocol) == (label, protocol):
            return ScoreCell(
                value=score.score,
                low=None,
                high=None,
                normalised=_normalise(score.score, reference),
                normalised_low=None,
                normalised_high=None,
                comparable=True,
                rule=score.source,
                runs=[],
                n_configurations=0,
                n_episodes=None,
                min_agent_steps=None,
                max_agent_steps=None,
                wall_time_s=None,
            )
    return None


def persons_cell(mean: PersonsMean) -> ScoreCell:
    """The cell of people's games here."""
    seen = seen_by_people(ENVIRONMENTS[mean.environment])
    aid = "" if seen is None else f". People see {seen}, agents do not"
    return ScoreCell(
        value=mean.mean_return,
        low=None,
        high=None,
        normalised=None,
        normalised_low=None,
        normalised_high=None,
        comparable=False,
        rule=f"Mean of {mean.player} over {mean.n_games} games here, under the protocol {HUMAN_PLAY}: the "
        f"human reference of this installation, since no human score has been published{aid}",
        runs=[],
        n_configurations=0,
        n_episodes=mean.n_games,
        min_agent_steps=None,
        max_agent_steps=None,
        wall_time_s=None,
    )


def normalise_runs(candidate: Candidate, reference: Reference) -> list[float]:
    """The human-normalised scores of a configuration's runs."""
    values = [normalise(score.score, reference) for score in candidate.runs]
    return [value for value in values if value is not None]


def _normalise(score: float | None, reference: Reference | None) -> float | None:
    return None if reference is None else normalise(score, reference)


def reference_of(environment: EnvironmentOut, protocol: str) -> Reference | None:
    """The scores of a random agent and of a person under this protocol, if the person's is higher."""
    levels = {score.label: score.score for score in environment.published if score.protocol == protocol}
    if not all(label in levels for label in _REFERENCES) or levels["human"] <= levels["random"]:
        return None
    return Reference(levels["random"], levels["human"])


def sources_of(environment: EnvironmentOut, protocol: str) -> str:
    """Where the scores of the random agent and of the person come from."""
    sources = dict.fromkeys(
        score.source
        for score in environment.published
        if score.protocol == protocol and score.label in _REFERENCES
    )
    return "; ".join(sources)
