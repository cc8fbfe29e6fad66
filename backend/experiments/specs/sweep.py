"""A sweep's specification: one request for runs, and the settings that vary between configurations."""

from math import prod
from typing import Annotated, Any, Literal, Self

from pydantic import Field, JsonValue, model_validator

from backend.specs.fields import Strict
from backend.specs.run_fields import BLANK, EXTERNAL, MAX_SEEDS, SECTIONS, GivenName, Notes, Seed

MAX_CONFIGURATIONS = 1_000
MAX_RUNS = 10_000
"""Maximum number of runs of a sweep."""
MAX_DIMENSIONS = 20
_MAX_BOUND = 2.0**53
"""Maximum bound of a range: integers up to it are exact."""
MAX_CONCURRENCY = 100

Distribution = Literal["uniform", "log_uniform", "integer", "log_integer"]


class Dimension(Strict):
    """What one setting varies over: a list of values, or a range."""

    values: Annotated[tuple[JsonValue, ...], Field(strict=False)] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_CONFIGURATIONS,
        description="Values of the setting: numbers, words or booleans.",
    )
    distribution: Distribution = Field(
        default="uniform",
        description="How a value is drawn from the range; grids are spaced in the same way.",
    )
    low: float | None = Field(default=None, description="Lowest value of the range.")
    high: float | None = Field(default=None, description="Highest value of the range.")
    n: int | None = Field(
        default=None, ge=2, le=MAX_CONFIGURATIONS, description="Number of values of the range in a grid."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.values is not None:
            if self.low is not None or self.high is not None or self.n is not None:
                raise ValueError("give values, or low and high, not both")
            if any(isinstance(value, dict | list) for value in self.values):
                raise ValueError("values must be numbers, words or booleans")
            if len({(isinstance(value, bool), value) for value in self.values}) < len(self.values):
                raise ValueError("values contains a value twice")
            return self
        if self.low is None or self.high is None:
            raise ValueError("give values, or low and high")
        if not self.low < self.high:
            raise ValueError(f"low must be below high, got {self.low:g} and {self.high:g}")
        if self.distribution.startswith("log") and self.low <= 0:
            raise ValueError(f"a logarithmic range must be above 0, got low = {self.low:g}")
        if max(abs(self.low), abs(self.high)) > _MAX_BOUND:
            raise ValueError(f"low and high must be within ±{_MAX_BOUND:g}")
        if self.distribution.endswith("integer") and not (
            float(self.low).is_integer() and float(self.high).is_integer()
        ):
            raise ValueError("low and high of an integer range must be integers")
        return self


class Racing(Strict):
    """Stop configurations that are worse than another; see `backend.statistics.racing`."""

    confidence: float = Field(
        default=0.95,
        ge=0.5,
        le=0.9999,
        description="1 minus the probability that any of several equally good configurations is eliminated.",
    )
    initial_seeds: int = Field(
        default=3, ge=3, le=MAX_SEEDS, description="Seeds of each configuration before the first comparison."
    )


class Budget(Strict):
    """No run is started once one of these limits is reached; runs that have started end as usual."""

    runs: int | None = Field(default=None, ge=1, le=MAX_RUNS, description="Number of runs of the sweep.")
    agent_steps: int | None = Field(
        default=None, ge=1, le=10**15, description="Agent steps of all its runs together."
    )
    wall_time_s: float | None = Field(
        default=None, gt=0, le=10**9, description="Time since the sweep was created, in seconds."
    )


class SweepSpec(Strict):
    """Runs of many configurations, each with several seeds."""

    # Defaults that are objects come from factories: generators of clients cannot read them in a schema.

    name: GivenName
    """Name shown on pages."""
    notes: Notes = ""
    """Free text about the sweep, in Markdown."""
    run: dict[str, JsonValue] = Field(
        description="What all runs have in common: a body of `POST /runs` without `seed`, `seeds` and "
        "`grid`. With the origin `external`, `callboard experiments run` starts them in a terminal."
    )
    space: dict[str, Dimension] = Field(
        min_length=1,
        max_length=MAX_DIMENSIONS,
        description="What varies, by field: `config.<setting>`, `environment_config.<setting>` or "
        "`stop.<limit>`.",
    )
    sampler: Literal["grid", "random", "tpe"] = Field(
        default="grid",
        description="Every combination of values, or configurations drawn at random, or, after ten such, "
        "chosen by the scores so far: Optuna's tree-structured Parzen estimator, with the extra optuna.",
    )
    n_configurations: int | None = Field(
        default=None,
        ge=1,
        le=MAX_CONFIGURATIONS,
        description="Number of configurations; a grid has all combinations.",
    )
    sampler_seed: Seed = Field(default=0, description="Seed of the random configurations.")
    max_seeds: int = Field(
        default=10,
        ge=1,
        le=MAX_SEEDS,
        description="Seeds of each configuration, at most: 0, 1, 2, …, unless distinct_seeds is set.",
    )
    distinct_seeds: bool = Field(
        default=False,
        description="Whether each configuration has seeds, and so initial weights, of its own: configuration "
        f"k has {MAX_SEEDS} k, {MAX_SEEDS} k + 1, … instead of 0, 1, ….",
    )
    racing: Racing | None = Field(
        default_factory=Racing, description="When worse configurations get no further seed; null: never."
    )
    objective: Literal["training", "evaluation"] = Field(
        default="training",
        description="Score of a finished run: the mean return of its last 100 training episodes, or of its "
        "last evaluation.",
    )
    protocol: str | None = Field(
        default=None, max_length=50, description="Protocol of the evaluations; default: the runs' own."
    )
    budget: Budget = Field(default_factory=Budget, description="Limits after which no run is started.")
    concurrency: int = Field(
        default=10,
        ge=1,
        le=MAX_CONCURRENCY,
        description="Runs that may be queued or running at the same time.",
    )

    @property
    def initial_seeds(self) -> int:
        """Seeds of each configuration before the first comparison."""
        return self.max_seeds if self.racing is None else self.racing.initial_seeds

    @property
    def is_of_scripts(self) -> bool:
        """Whether somebody starts its runs, which are of a script of their own, in a terminal."""
        return self.run.get("origin") == EXTERNAL

    def runs_have(self, name: Literal["algorithm", "environment"]) -> str | None:
        """Algorithm or environment of its runs, as the request names it, or its command has it."""
        command: Any = self.run.get("definition") or {}
        value = self.run.get(name) or command.get(name) or command.get("name")
        return None if value is None else str(value)

    def seed_of(self, configuration: int, i: int) -> int:
        """Seed i, from 0, of a configuration."""
        return i + (MAX_SEEDS * configuration if self.distinct_seeds else 0)

    def field_problems(self) -> dict[str, str]:
        """Errors that concern several fields, by path."""
        problems: dict[str, str] = {}
        if not self.name.strip():
            problems["name"] = BLANK
        for name in ("seed", "seeds", "grid"):
            if name in self.run:
                problems[f"run.{name}"] = "a sweep chooses it: leave it out"
        if "origin" in self.run and not self.is_of_scripts:
            problems["run.origin"] = f"must be {EXTERNAL}, for a script of your own, or left out"
        if self.is_of_scripts and self.objective == "evaluation":
            problems["objective"] = "runs of a script of your own are not evaluated: use training"
        for path, dimension in self.space.items():
            section, _, name = path.partition(".")
            given = self.run.get(section)
            if section not in SECTIONS or not name:
                problems[f"space.{path}"] = (
                    "is not a setting: use a field of config, environment_config or stop, such as "
                    "config.learning_rate"
                )
            elif self.is_of_scripts and section != "config":
                problems[f"space.{path}"] = "a script of your own has settings in config only"
            elif isinstance(given, dict) and name in given:
                problems[f"space.{path}"] = f"is also in run.{section}: give it once"
            elif self.sampler == "grid" and dimension.values is None and dimension.n is None:
                problems[f"space.{path}.n"] = "is required: how many values of the range the grid takes"
            elif self.sampler != "grid" and dimension.n is not None:
                problems[f"space.{path}.n"] = "only a grid has a number of values of a range"
        if self.sampler != "grid" and self.n_configurations is None:
            problems["n_configurations"] = f"is required by the sampler {self.sampler}"
        if self.sampler == "tpe" and self.racing is not None:
            problems["racing"] = "must be null: the sampler tpe compares configurations itself"
        if self.sampler == "grid" and self.n_configurations is not None:
            problems["n_configurations"] = "a grid has all combinations: leave it out"
        if self.racing is not None and self.racing.initial_seeds > self.max_seeds:
            least = self.racing.initial_seeds
            problems["max_seeds"] = (
                f"must be at least racing.initial_seeds, {least}: lower that, or set racing to null"
            )
        if self.protocol is not None and self.objective != "evaluation":
            problems["protocol"] = "only evaluations have a protocol: set objective to evaluation"
        return problems | ({} if problems else self._size_problems())

    def _size_problems(self) -> dict[str, str]:
        if self.sampler != "grid":
            n = self.n_configurations or 0
        else:
            n = prod(
                len(dimension.values) if dimension.values is not None else dimension.n or 0
                for dimension in self.space.values()
            )
        if n > MAX_CONFIGURATIONS:
            return {"space": f"has {n:,} combinations; at most {MAX_CONFIGURATIONS:,} are allowed"}
        if n * self.max_seeds > MAX_RUNS:
            message = f"{n:,} configurations with {self.max_seeds} seeds are more than {MAX_RUNS:,} runs"
            return {"max_seeds": message}
        return {}
