"""Response bodies of scores."""

from typing import Literal

from pydantic import Field

from backend.drawing.schemas import FigureOut
from backend.platform.schemas import Id, Number
from backend.specs.fields import Schema

FigureId = Literal["profile", "optimality_gap"]
"""A figure of the scores."""


class ScoreProtocol(Schema):
    """A protocol that can be chosen."""

    id: str = Field(examples=["noop_starts"])
    """Id of the protocol."""
    title: str
    """The protocol in words."""
    n_runs: int
    """Number of finished runs with an evaluation under it."""


class ScoreColumn(Schema):
    """A column: an algorithm, or the published scores of an agent."""

    id: str = Field(examples=["paac", "published:human"])
    """Id of the column: of the algorithm, or `published:` and the label of the scores, or `human_here`."""
    title: str = Field(examples=["PAAC", "human"])
    """Head of the column."""
    source: Literal["ours", "published", "people"]
    """Whether its scores are those of runs of this installation, or published ones, or the means of people
    over their games here: the human references of this installation, of the protocol `human_play`."""
    shown: bool
    """Whether it was asked for; columns that were not have no cells."""
    n: int
    """Number of its environments with a score, under the protocols of the rows."""


class ScoreCell(Schema):
    """The score of an algorithm, of a published agent or of a person in an environment."""

    value: Number
    """Mean of the runs' scores, the published score, or the person's mean."""
    low: Number
    """Lower bound of the 95 % interval; null for too few seeds and for published scores."""
    high: Number
    """Upper bound of the 95 % interval."""
    normalised: Number
    """100 (score − random) / (human − random), in percent, by the references of the row; null without
    them, and if the score was measured in another way."""
    normalised_low: Number
    """Lower bound of its interval."""
    normalised_high: Number
    """Upper bound of its interval."""
    comparable: bool
    """Whether the score was observed as published scores were: full frame, minimal action set, action repeat
    4, the environment's other settings at their defaults. Others are neither normalised nor in the foot, nor
    are people's means."""
    rule: str
    """The rule by which the score was chosen, or where it was published."""
    runs: list[Id]
    """The runs of the score, one for each seed, the latest first; empty for a published score."""
    n_configurations: int
    """Configurations with a score, of which this one has the highest; 0 for a published score."""
    n_episodes: int | None
    """Episodes of each evaluation, the fewest of its runs; of a person the games; null for a published
    score."""
    min_agent_steps: int | None
    """Agent steps at which its runs were evaluated: the fewest; null for a published score."""
    max_agent_steps: int | None
    """The most."""
    wall_time_s: Number
    """Mean training time of its runs, in seconds; null for a published score."""


class ScoreRow(Schema):
    """An environment with its scores, all of which are of one protocol."""

    environment: str = Field(examples=["ALE/Pong-v5"])
    """Id of the environment."""
    title: str = Field(examples=["Pong"])
    """Name of the environment."""
    family: str
    """Family of the environment."""
    protocol: str
    """Protocol of every score of the row but people's: that of the table, or the environment's own if it
    lacks that."""
    references: str
    """Where the scores of a random agent and of a person, by which those of the row are normalised, were
    published; empty if there are none under the protocol."""
    cells: list[ScoreCell | None]
    """A score for each shown column; null without any."""
    runnable: list[str]
    """Ids of the algorithms that can be trained in the environment and evaluated under the protocol."""


class ScoreFoot(Schema):
    """A summary of the columns over environments."""

    name: Literal["mean", "median", "iqm"]
    """Mean, median or interquartile mean."""
    values: list[Number]
    """Of the scores, for each shown column."""
    normalised: list[Number]
    """Of the human-normalised scores, in percent, for each shown column."""


class Scores(Schema):
    """Environments as rows, algorithms and published agents as columns."""

    protocol: str = Field(examples=["noop_starts"])
    """Protocol of the table."""
    protocol_title: str
    """The protocol in words."""
    protocols: list[ScoreProtocol]
    """The protocols to choose from: those under which runs of this installation or published agents have
    scores, and those of the environments."""
    rule: str
    """The rule by which the scores of runs become the value of a cell."""
    columns: list[ScoreColumn]
    """Every column; first the references, then the algorithms, then the other published agents."""
    rows: list[ScoreRow]
    """Every environment; hosts' custom ones last."""
    foot: list[ScoreFoot]
    """Mean, median and interquartile mean over the same environments; empty if there are none."""
    foot_environments: list[str]
    """Ids of the environments under the table's protocol in which every shown column that has a score
    anywhere has a comparable one: `values` are over these."""
    normalised_environments: list[str]
    """Those of them with references: `normalised` is over these."""


class ScoresFigure(Schema):
    """A figure of the human-normalised scores."""

    figure: FigureOut
    """For Plotly."""
    caption: str
    """What it is over, in words."""
    environments: list[str]
    """Ids of the environments in which every algorithm with a score has one."""
    optimality_gaps: dict[str, float]
    """By title of the algorithm, how far its scores stay below 100 % on average."""
