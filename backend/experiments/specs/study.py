"""A study's specification: arms × environments × draws, and the figures that its runs are reduced to."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import Field, JsonValue, StringConstraints, model_validator

from backend.experiments.specs.sweep import MAX_CONCURRENCY, MAX_DIMENSIONS, MAX_RUNS, Budget, Dimension
from backend.specs.fields import SLUG, Strict, Text
from backend.specs.protocols import StartsChoice
from backend.specs.run_fields import BLANK, MAX_SEED, SECTIONS, GivenName, Notes, Seed

MAX_ARMS = 100
MAX_ENVIRONMENTS = 100
MAX_FIGURES = 10
MAX_CURVES = 100
"""Curves that a study's figure draws at most."""

Scale = Literal["minutes", "hours", "paper"]
"""How much of a paper's experiment a study repeats: minutes or hours of two idle cores, or as published."""

FigureId = Annotated[str, StringConstraints(pattern=SLUG)]
Label = Annotated[Text, Field(min_length=1, max_length=100)]

CHOSEN = ("name", "seed", "seeds", "grid", "origin", "algorithm", "environment", "config")
"""Fields of a run that a study chooses itself."""


class Arm(Strict):
    """One method of a study: an algorithm with settings that vary together."""

    label: Label
    """Name of the arm on figures."""
    algorithm: str = Field(max_length=50, description="Id of the algorithm, from `GET /algorithms`.")
    preset: str | None = Field(
        default=None,
        max_length=50,
        description="Preset of the algorithm that the settings start from. A stored study has the preset's "
        "settings instead of its name.",
    )
    config: dict[str, JsonValue] = Field(
        default_factory=dict, description="Settings of the algorithm that differ from its defaults."
    )
    environment_config: dict[str, JsonValue] = Field(
        default_factory=dict, description="Settings of the environments that differ from their defaults."
    )
    stop: dict[str, JsonValue] = Field(
        default_factory=dict, description="Limits of this arm's runs, instead of those of `run`."
    )


class Draws(Strict):
    """The repetitions of each arm on each environment: seeds, or random settings with seeds of their own."""

    n: int = Field(ge=1, description="Number of draws. Draw k has the seed `first_seed` + k.")
    first_seed: Seed = Field(default=0, description="Seed of the first draw.")
    seeds: tuple[Seed, ...] = Field(
        default=(),
        max_length=MAX_RUNS,
        strict=False,
        description="Seeds of the first draws, instead of `first_seed` + k; further draws have those after "
        "the highest of these.",
    )
    space: dict[str, Dimension] = Field(
        default_factory=dict,
        max_length=MAX_DIMENSIONS,
        description="Settings drawn at random for each draw, by field: `config.<setting>`, "
        "`environment_config.<setting>` or `stop.<limit>`. All arms and environments have the same draws.",
    )
    sampler_seed: Seed = Field(default=0, description="Seed of the random settings.")

    def seed_of(self, draw: int) -> int:
        """Seed of a draw."""
        if draw < len(self.seeds):
            return self.seeds[draw]
        return draw - len(self.seeds) + (max(self.seeds) + 1 if self.seeds else self.first_seed)


Rule = Literal["last", "best_kept", "best_of", "mean_of_best", "time_to", "time_to_peak", "top"]


class ReductionRule(Strict):
    """The rule by which the runs of an arm on an environment become one value."""

    rule: Rule = Field(
        default="last",
        description="`last` score, `best_kept` parameters evaluated again, `best_of` k draws, `mean_of_best` "
        "k runs or settings, `time_to` a reference score, `time_to_peak` of each run, `top` k by a metric.",
    )
    source: Literal["evaluations", "training"] = Field(
        default="training",
        description="Scores of evaluations, or of the last 100 training episodes.",
    )
    centre: Literal["mean", "median"] = Field(default="mean", description="Centre over runs.")
    k: int | None = Field(default=None, ge=1, le=1_000, description="Of `best_of`, `mean_of_best` and `top`.")
    of: Literal["runs", "settings"] = Field(
        default="runs", description="What `mean_of_best` chooses: runs, or settings over their seeds."
    )
    metric: str | None = Field(default=None, max_length=200, description="Metric of `top`.")
    axis: Literal["agent_steps", "wall_time_s"] = Field(
        default="wall_time_s", description="What a time is measured in."
    )
    references: dict[str, float] = Field(
        default_factory=dict, description="Score to be reached, by environment, of `time_to`."
    )
    reference: Literal["human", "dqn"] | None = Field(
        default=None, description="A published score to be reached by `time_to`."
    )
    reference_arm: str | None = Field(
        default=None,
        max_length=100,
        description="Label of the arm whose best score on each environment `time_to` has to reach: the mean "
        "of the highest of its runs.",
    )
    ratio_to: str | None = Field(
        default=None, max_length=100, description="Label of the arm that each value is divided by."
    )
    inverse: bool = Field(default=False, description="The ratio is a speed-up: that arm's by each value.")
    normalise: Literal["human", "dqn"] | None = Field(
        default=None, description="100 (score − random) / (target − random) with the target's score."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.rule in ("best_of", "mean_of_best", "top") and self.k is None:
            raise ValueError(f"the rule {self.rule} needs k")
        if self.rule == "top" and self.metric is None:
            raise ValueError("the rule top needs a metric")
        n_references = bool(self.references) + (self.reference is not None) + (self.reference_arm is not None)
        if self.rule == "time_to" and n_references != 1:
            raise ValueError("the rule time_to needs one of references, reference and reference_arm")
        return self


FigureKind = Literal[
    "curves",
    "scatter",
    "sorted",
    "bars",
    "stacked_bars",
    "games",
    "reached",
    "counts",
    "table",
    "speedups",
    "profile",
    "optimality_gap",
]
"""Kind of figure: each is declared in `backend.experiments.figures.kinds`."""
XAxis = Literal["agent_steps", "frames", "hours", "epochs", "wall_time_s"]


class StudyFigure(Strict):
    """A figure or table of a study."""

    id: FigureId
    """Id of the figure, for `GET /studies/{id}/figures/{figure}`."""
    title: Label
    """Title of the figure."""
    kind: FigureKind = Field(
        description="`curves` by environment, `scatter` of scores over a setting, `sorted` scores, `bars` or "
        "`stacked_bars` of metrics by arm, `games` (bars over environments), `reached` (environments that "
        "reached a score by hour), `counts` (one run's numbers of processes), `table` of scores, `speedups`, "
        "performance `profile` and `optimality_gap` over environments, of normalised scores."
    )
    x: XAxis = Field(default="agent_steps", description="Horizontal axis of `curves`.")
    setting: str | None = Field(
        default=None,
        max_length=200,
        description="Setting on the horizontal axis of `scatter` and of bars, or whose best values "
        "`mean_of_best` of settings takes: by default the first that is drawn.",
    )
    log: bool | None = Field(
        default=None, description="Whether a setting's axis is logarithmic; default: as suits its values."
    )
    metrics: tuple[str, ...] = Field(
        default=(),
        max_length=10,
        strict=False,
        description="Metrics that are drawn: of `curves` one, the default being the score; of bars all.",
    )
    reduction: ReductionRule = Field(
        default_factory=ReductionRule, description="The rule that gives each arm and environment its value."
    )
    arms: tuple[str, ...] = Field(
        default=(),
        max_length=MAX_ARMS,
        strict=False,
        description="Labels of the arms that are drawn; empty for all.",
    )
    published: tuple[str, ...] = Field(
        default=(),
        max_length=20,
        strict=False,
        description="Labels of published scores that stand beside the values, as in `GET /environments`: of "
        "every protocol, or of one, as in `human@noop_starts`.",
    )


class StudySpec(Strict):
    """Arms × environments × draws, started as ordinary runs of one group."""

    name: GivenName
    """Name shown on pages, and of the group of the runs."""
    notes: Notes = ""
    """Free text about the study, in Markdown."""
    arms: tuple[Arm, ...] = Field(
        min_length=1, max_length=MAX_ARMS, strict=False, description="The methods that are compared."
    )
    environments: tuple[Annotated[str, Field(max_length=200)], ...] = Field(
        min_length=1,
        max_length=MAX_ENVIRONMENTS,
        strict=False,
        description="Ids of the environments, from `GET /environments`.",
    )
    draws: Draws = Field(description="The repetitions of each arm on each environment.")
    starts: dict[str, StartsChoice] = Field(
        default_factory=dict,
        description="Environment -> protocol with a start set of it, such as `agent_starts:pong`, for its "
        "evaluations, in place of the arms' `evaluation_protocol`.",
    )
    run: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="What all runs have in common: fields of a body of `POST /runs`, such as `stop`, "
        "`device` or `priority`.",
    )
    figures: tuple[StudyFigure, ...] = Field(
        default=(), max_length=MAX_FIGURES, strict=False, description="What its runs are reduced to."
    )
    differs: tuple[Annotated[Text, Field(min_length=1, max_length=300)], ...] = Field(
        default=(),
        max_length=20,
        strict=False,
        description="What differs from the paper that the study repeats, a line each.",
    )
    budget: Budget = Field(default_factory=Budget, description="Limits after which no run is started.")
    concurrency: int = Field(
        default=10,
        ge=1,
        le=MAX_CONCURRENCY,
        description="Runs that may be queued or running at the same time.",
    )

    @property
    def n_runs(self) -> int:
        """Number of runs: one for each arm, environment and draw."""
        return len(self.arms) * len(self.environments) * self.draws.n

    def label_of(self, arm: int) -> str:
        """Label of an arm; the number of one that a damaged study no longer has."""
        return self.arms[arm].label if arm < len(self.arms) else f"arm {arm}"

    def field_problems(self) -> dict[str, str]:
        """Errors that concern several fields, those of its figures aside, by path."""
        return dict(self._problems())

    def _problems(self) -> Iterator[tuple[str, str]]:
        if not self.name.strip():
            yield "name", BLANK
        labels = [arm.label for arm in self.arms]
        for at, label in enumerate(labels):
            if not label.strip():
                yield f"arms.{at}.label", BLANK
            if label in labels[:at]:
                yield f"arms.{at}.label", "is also the label of another arm"
        for at, environment in enumerate(self.environments):
            if environment in self.environments[:at]:
                yield f"environments.{at}", "is listed twice"
        for environment in self.starts:
            if environment not in self.environments:
                yield f"starts.{environment}", "is not an environment of the study"
        for name in (*CHOSEN, "environment_config"):
            if name in self.run:
                yield f"run.{name}", "a study chooses it: leave it out"
        if self.n_runs > MAX_RUNS:
            sizes = f"{len(self.arms)} arms × {len(self.environments)} environments × {self.draws.n:,} draws"
            yield "draws.n", f"{sizes} are {self.n_runs:,} runs; at most {MAX_RUNS:,} are allowed"
        yield from self._seed_problems()
        yield from self._space_problems()

    def _seed_problems(self) -> Iterator[tuple[str, str]]:
        draws = self.draws
        known: set[int] = set()
        for at, seed in enumerate(draws.seeds):
            if seed in known:
                yield f"draws.seeds.{at}", "is listed twice"
            known.add(seed)
        if draws.seeds and draws.first_seed:
            yield "draws.first_seed", "seeds names the seeds: leave it out"
        if draws.n < len(draws.seeds):
            yield "draws.n", f"must be at least {len(draws.seeds):,}, the number of seeds"
        elif draws.seed_of(draws.n - 1) > MAX_SEED:
            yield (
                f"draws.{'n' if draws.seeds else 'first_seed'}",
                f"the last seed would exceed {MAX_SEED:,}",
            )

    def _space_problems(self) -> Iterator[tuple[str, str]]:
        for path, dimension in self.draws.space.items():
            section, _, name = path.partition(".")
            field = f"draws.space.{path}"
            given: list[Any] = [self.run.get(section), *(getattr(arm, section, None) for arm in self.arms)]
            if section not in SECTIONS or not name:
                yield (
                    field,
                    (
                        "is not a setting: use a field of config, environment_config or stop, such as "
                        "config.learning_rate"
                    ),
                )
            elif any(isinstance(value, dict) and name in value for value in given):
                yield field, "is also set by an arm or by run: give it once"
            elif dimension.n is not None:
                yield f"{field}.n", "draws are random: leave the number of values out"
