"""What a study at the scale *paper* starts, compared with a transcription of the papers.

`transcription.json` was written from the papers' texts by somebody who had not read the definitions. Whatever
a definition has otherwise stands in its `differs`, and here with a part of that line.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from backend.experiments.cells.protocols import protocols_of
from backend.experiments.definitions import ITEMS, study_of
from backend.experiments.definitions.base import NO_FIGURE, Item
from backend.experiments.experiments import study as expansion
from backend.experiments.specs.study import StudyFigure, StudySpec
from backend.specs.run import RunSpec

TRANSCRIPTION = json.loads(Path(__file__).with_name("transcription.json").read_text("utf-8"))
LABELS = {"a3c-optimizers": "Figure S1", "a3c-continuous": "Figure S3"}
"""Items that are not called by the paper's number."""
DECLARED = {
    ("a3c-figure-1", "budget"): "does not state how long",
    ("a3c-figure-1", "dqn_repetitions"): "instead of 5 seeds",
    ("a3c-figure-2", "budget"): "does not state how long",
    **{
        (f"a3c-figure-{n}", field): line
        for n in ("3", "4", "s5", "s6")
        for field, line in (
            ("budget", "does not state how long"),
            ("repetitions", "does not state of how many"),
        )
    },
    ("a3c-figure-s7", "budget"): "does not state how long",
    ("a3c-optimizers", "budget"): "does not state how long",
    ("a3c-figure-s2", "games"): "gymnasium's car",
    ("a3c-figure-s2", "learning_rate"): "states neither rates",
    ("a3c-figure-s2", "repetitions"): "nor repetitions",
    ("a3c-table-1", "learning_rate"): "tuned both on six games",
    ("a3c-table-1", "protocol"): "instead of human starts",
    ("a3c-table-s1", "learning_rate"): "tuned both on six games",
    ("a3c-table-s1", "protocol"): "instead of human starts",
    ("a3c-table-2", "budget"): "does not state how long",
    ("a3c-table-2", "learning_rate"): "learning rates and runs of this table",
    ("a3c-table-2", "repetitions"): "learning rates and runs of this table",
    ("a3c-continuous", "budget"): "One day and 50 learning rates",
    ("a3c-continuous", "repetitions"): "One day and 50 learning rates",
    ("a3c-continuous", "games"): "gymnasium's tasks",
    ("a3c-continuous", "learning_rate"): "Learning rates from 1e-5",
    ("paac-figure-2", "budget"): "does not state how long",
    ("paac-figure-2", "devices"): "a GPU and a CPU side by side",
    ("paac-figure-2", "n_e"): "numbers of environments of this figure",
    ("paac-figure-3", "repetitions"): "does not state how many",
    ("paac-figure-4", "repetitions"): "does not state how many",
    ("gorila-figure-3", "protocol"): "instead of human starts",
    ("gorila-figure-4", "protocol"): "one protocol at a time",
    ("gorila-figure-5", "protocol"): "instead of human starts",
    ("gorila-table-2", "protocol"): "instead of human starts",
    ("gorila-table-3", "protocol"): "instead of human starts",
    ("ga3c-figure-2", "budget"): "does not state how long",
    ("ga3c-figure-4", "budget"): "states no time",
    ("ga3c-figure-3", "networks"): "larger networks are left out",
    ("ga3c-figure-5", "games"): "does not name the games",
    ("ga3c-figure-6", "budget"): "does not state how long",
    ("ga3c-figure-6", "selection"): "Means of three runs",
    ("ga3c-figure-7", "budget"): "does not state its training time",
    ("ga3c-figure-7", "games"): "Nor does its text name the games",
    ("ga3c-figure-7", "minimum_batch"): "the rest are ours",
    ("ga3c-table-2", "budget"): "does not state its game and time",
    ("ga3c-table-2", "games"): "does not state its game and time",
    ("ga3c-table-3", "selection"): "the best of an unstated number",
}
"""Item and field of the transcription that differ, with a part of the line that declares it."""


@dataclass(frozen=True)
class Started:
    """What an item starts at the scale *paper*."""

    item: Item
    spec: StudySpec
    runs: list[RunSpec]
    """A run of each arm that its figures show, on the first environment."""
    figures: list[StudyFigure]

    def values(self, name: str, *, methods: tuple[str, ...] = ()) -> set[Any]:
        """The values of a setting, of the runs that have it."""
        dumped = [run.config.model_dump() for run in self.runs if not methods or run.algorithm in methods]
        return {config[name] for config in dumped if name in config}

    @property
    def drawn(self) -> Any:
        """The range of the learning rates that are drawn; None if none are."""
        dimension = self.spec.draws.space.get("config.learning_rate")
        return None if dimension is None else {"log_uniform": [dimension.low, dimension.high]}


def started(item_id: str) -> Started:
    paper, definition, item = ITEMS[item_id]
    spec = expansion.resolve_presets(study_of(paper, definition, "paper"))
    of_item = {figure.id for figure in (item.figure, *item.more) if figure is not None}
    figures = [figure for figure in spec.figures if figure.id in of_item]
    shown: set[str] = set()
    for figure in figures:
        shown |= set(figure.arms) or {arm.label for arm in spec.arms}
        shown |= set(filter(None, [figure.reduction.reference_arm]))
    arms = tuple(arm for arm in spec.arms if arm.label in shown)
    draws = spec.draws.model_copy(update={"n": 1})
    small = {"arms": arms, "environments": spec.environments[:1], "draws": draws}
    cells = expansion.cells(spec.model_copy(update=small), {})
    return Started(item, spec, [cell.spec for cell in cells], figures)


NAMES = {
    "gorila_dqn": "gorila", "one_step_q": "one-step q", "one_step_sarsa": "one-step sarsa",
    "n_step_q": "n-step q",
}  # fmt: skip


def _methods(of: Started, stated: list[str]) -> bool:
    """Whether all trained methods are stated, and all stated ones are trained or stand beside them."""
    trained = set()
    for run in of.runs:
        name = NAMES.get(run.algorithm, run.algorithm)
        variants = {
            f"{name} {'lstm' if getattr(run.config, 'recurrent', False) else 'ff'}",
            f"{name} {getattr(run.config, 'network', '')}",
        }
        trained |= (variants & set(stated)) or {name}
    published = {name.partition("@")[0].lower() for figure in of.figures for name in figure.published}
    published |= {label.removesuffix(" ff") for label in published}
    rules = [figure.reduction for figure in of.figures]
    beside = (
        {"dqn"} if any(rule.normalise == "dqn" or rule.reference_arm == "DQN" for rule in rules) else set()
    )
    return trained - beside <= set(stated) <= trained | published | beside


def _games(of: Started, stated: Any) -> bool:
    names = [name.removeprefix("ALE/").removesuffix("-v5") for name in of.spec.environments]
    if isinstance(stated, str):
        stated = TRANSCRIPTION["games"].get(stated, [])
    return len(names) == stated if isinstance(stated, int) else sorted(names) == sorted(stated or [])


def _budget(of: Started, stated: Any) -> bool:
    if stated is None:
        return False
    [(unit, amounts)] = stated.items()
    wanted = {amounts} if isinstance(amounts, int) else set(amounts)
    if unit == "agent_steps":
        return {(run.stop.agent_steps, run.stop.wall_time_s) for run in of.runs} == {
            (amount, None) for amount in wanted
        }
    seconds = {"hours": 3_600, "minutes": 60}[unit]
    # Gorila's budget: DQN had its own, of 12 to 14 days.
    limits = {run.stop.wall_time_s for run in of.runs if run.algorithm != "dqn"}
    return limits == {amount * seconds for amount in wanted}


def _networks(of: Started, stated: list[str]) -> bool:
    names = set()
    for run in of.runs:
        config = run.config.model_dump()
        name = {"nips": "nips" if "nips" in stated else "small"}.get(config["network"], config["network"])
        if name == "large":
            name = f"large, stride {config['first_layer_stride']}"
        names.add(f"{name} + 256 LSTM cells" if config.get("recurrent") else name)
    return names == set(stated)


PROTOCOLS = {
    "null op": "noop_starts_5min",
    "30 runs with up to 30 no-ops": "noop_starts",
    "30 games, each with a random seed": "random_seeds",
}


def _protocol(of: Started, stated: Any) -> bool:
    ours = {
        protocol
        for number, arm in enumerate(of.spec.arms)
        if any(not figure.arms or arm.label in figure.arms for figure in of.figures)
        for protocol in protocols_of(of.spec, number).values()
    }
    return isinstance(stated, str) and ours == {PROTOCOLS.get(stated, "human_starts")}


def _rule(rule: str, k: int | None = None, **more: Any) -> Callable[[Started], bool]:
    def holds(of: Started) -> bool:
        reductions = [figure.reduction for figure in of.figures]
        return all(
            (reduction.rule, reduction.k) == (rule, k)
            and all(getattr(reduction, name) == v for name, v in more.items())
            for reduction in reductions
        )

    return holds


def _kind(kind: str) -> Callable[[Started], bool]:
    return lambda of: of.figures[0].kind == kind


SELECTIONS: dict[str, Callable[[Started], bool]] = {
    "mean of the best 5 of 50": _rule("mean_of_best", 5, of="runs"),
    "mean of the three best learning rates": _rule("mean_of_best", 3, of="settings"),
    "every trial a point": _kind("scatter"),
    "every run a curve": lambda of: of.spec.draws.n == 1,  # curves are of means
    "final scores in descending order": _kind("sorted"),
    "final weights": _rule("last", source="evaluations"),
    "best of three": _rule("best_of", 3, source="evaluations"),
    "best agent": lambda of: of.spec.draws.n > 1,
    "top three of each number of agents": _rule("top", 3, metric="speed/updates_per_s"),
    "best-kept parameters of periodic evaluations": lambda of: (
        of.figures[0].kind == "reached" or all(figure.reduction.rule == "best_kept" for figure in of.figures)
    ),
}
AXES = {"hours": "hours", "time": "hours", "wall-clock time": "hours"}


def _x(of: Started, stated: str | None) -> bool:
    figure = of.figures[0]
    if stated is None:
        return True
    if stated == "learning rate":
        return figure.setting == "config.learning_rate"
    if figure.kind in ("counts", "reached"):
        return True
    if stated.startswith("epochs"):  # PAAC's are of a million agent steps: a scale of the same axis
        return figure.x in ("epochs", "agent_steps")
    return figure.x == AXES[stated]


def _learning_rate(of: Started, stated: Any) -> bool:
    if isinstance(stated, dict):
        return bool(of.drawn == stated)
    if stated is None or isinstance(stated, str):
        return stated is None
    if {run.algorithm for run in of.runs} == {"paac"} and of.values("scale_learning_rate") == {True}:
        return True
    return of.values("learning_rate") == {stated}


def _printed(of: Started, stated: dict[str, list[float]]) -> bool:
    """Whether the values stand in the card's published table, which has them as rows or as columns."""
    assert of.item.published is not None
    printed = [[cell.replace(",", "").rstrip("×") for cell in row] for row in of.item.published.rows]
    lines = [*printed, *map(list, zip(*printed, strict=True))]
    return all(any(_is_part([f"{v}" for v in values], line) for line in lines) for values in stated.values())


def _is_part(values: list[str], line: list[str]) -> bool:
    n = len(values)
    return any(line[at : at + n] == values for at in range(len(line) - n + 1))


def _configurations(of: Started, stated: list[Any]) -> bool:
    dumped = [run.config.model_dump() for run in of.runs]
    ours = [
        "dynamic"
        if config["adjustment_interval_s"]
        else tuple(config[name] for name in ("n_actors", "n_predictors", "n_trainers"))
        for config in dumped
    ]
    best = (128, 2, 2)  # of the paper's system I: section 5.1
    wanted = [
        best if entry == "optimal" else "dynamic" if isinstance(entry, str) else tuple(entry.values())
        for entry in stated
    ]
    return sorted(map(str, ours)) == sorted(map(str, wanted))


ASYNCHRONOUS = ("a3c", "one_step_q", "one_step_sarsa", "n_step_q")


def _setting(name: str, *methods: str) -> Callable[[Started, Any], bool]:
    """Whether a setting has the stated value, or values, in all runs that have it."""

    def holds(of: Started, stated: Any) -> bool:
        ours = of.values(name, methods=methods)
        return not ours or ours == (set(stated) if isinstance(stated, list) else {stated})

    return holds


CHECKS: dict[str, Callable[[Started, Any], bool]] = {
    "methods": _methods,
    "games": _games,
    "budget": _budget,
    "networks": _networks,
    "protocol": _protocol,
    "selection": lambda of, stated: SELECTIONS[stated](of),
    "x": _x,
    "learning_rate": _learning_rate,
    "printed": _printed,
    "configurations": _configurations,
    "network": lambda of, stated: "mlp" in of.values("network") or stated in of.values("network"),
    "action_repeat": lambda of, stated: all(
        run.environment_config.model_dump().get("frame_skip", stated) == stated for run in of.runs
    ),
    "max_of_frames": lambda of, stated: all(
        run.environment_config.model_dump()["frame_maximum"] == "rgb" for run in of.runs
    ),
    "noops": lambda of, stated: all(
        run.environment_config.model_dump()["noop_max"] == stated[1] for run in of.runs
    ),
    "trials": lambda of, stated: of.spec.draws.n == stated,
    "repetitions": lambda of, stated: of.spec.draws.n == (1 if stated is None else stated),
    "dqn_repetitions": lambda of, stated: of.spec.draws.n == stated,
    "devices": lambda of, stated: len(stated) == 1,
    "normalised_by": lambda of, stated: (
        {figure.reduction.normalise for figure in of.figures}
        == (set(stated) if isinstance(stated, list) else {stated})
    ),
    "threads": _setting("n_actors", *ASYNCHRONOUS),
    "actor_learners": _setting("n_actors", *ASYNCHRONOUS),
    "t_max": _setting("t_max"),
    "discount": _setting("gamma"),
    "entropy": _setting("beta"),
    "rms_alpha": _setting("rmsprop_decay", *ASYNCHRONOUS, "paac"),
    "rms_epsilon": _setting("rmsprop_eps", "paac"),
    "value_coefficient": _setting("value_coefficient", "paac"),
    "target_every_frames": _setting("target_update_frames", *ASYNCHRONOUS),
    "epsilon_over_frames": _setting("exploration_anneal_frames", *ASYNCHRONOUS),
    "learning_rate_annealed_to": lambda of, stated: (
        of.values("learning_rate_schedule", methods=ASYNCHRONOUS) <= {"linear"}
        if stated == 0
        else of.values("learning_rate_schedule", methods=("paac",)) == {"constant"}
    ),
    "optimizer": lambda of, stated: (
        of.values("optimizer", methods=ASYNCHRONOUS if stated == "shared rmsprop" else ("gorila_dqn",))
        <= {stated.replace(" ", "_")}
    ),
    "optimizers": lambda of, stated: of.values("optimizer") == {name.replace(" ", "_") for name in stated},
    "learners": _setting("n_learners", "gorila_dqn"),
    "actors": _setting("n_actors", "gorila_dqn"),
    "parameter_servers": _setting("n_shards", "gorila_dqn"),
    "batch": _setting("batch_size", "gorila_dqn", "dqn"),
    "episodes": _setting("evaluation_episodes"),
    "workers": _setting("n_w"),
    "n_e": lambda of, stated: stated is not None and _setting("n_e")(of, stated),
    "learning_rates": _setting("learning_rate"),
    "learning_rate_per_n_e": lambda of, stated: (
        of.values("scale_learning_rate") == {True} and of.values("learning_rate") == {round(32 * stated, 6)}
    ),
    "agents": _setting("n_actors"),
    "predictors": _setting("n_predictors"),
    "trainers": _setting("n_trainers"),
    "start": lambda of, stated: all(
        of.values(f"n_{'actors' if name == 'agents' else name}") == {n} for name, n in stated.items()
    ),
    "configuration": lambda of, stated: all(
        of.values(f"n_{'actors' if name == 'agents' else name}", methods=("ga3c",)) == {n}
        for name, n in stated.items()
    ),
    "dynamic_change_every_s": lambda of, stated: of.values("adjustment_interval_s") <= {0, stated},
    "minimum_batch": lambda of, stated: False,
    "gradient_clipping": lambda of, stated: (
        not isinstance(stated, int) or of.values("max_grad_norm") == {stated}
    ),
}
NOT_COMPARED = {
    "place", "page", "recalled",
    "y", "beside", "columns", "average", "curves", "passed", "frames",  # what a figure shows
    "machine", "omitted", "omitted_null_op", "random_as_zero", "random_hz",  # of the papers' own data
    "normalisation", "null_op", "human_starts", "budget_place",  # of the protocols: their own tests
    "epsilon", "epsilon_final", "epsilon_probabilities", "epsilon_over_agent_steps", "replay",
    "epsilon_over_global_updates", "target_every_global_updates", "target_every_agent_steps",
    "log_epsilon", "dynamic", "dynamic_step", "batching", "loss", "episode_end", "initial_weights",
    "continuous", "update",  # constants: `test_presets` compares every preset with its paper's
}  # fmt: skip


@pytest.mark.parametrize(
    "item_id", [name for name, (_, known, _) in ITEMS.items() if "paper" in known.scales]
)
def test_study_at_the_papers_scale_is_what_the_paper_states_or_declares_what_differs(item_id: str) -> None:
    paper, definition, item = ITEMS[item_id]
    written = TRANSCRIPTION["papers"][paper.id]
    entry = written["items"][LABELS.get(item_id, item.label)]
    stated = {"budget": None, "games": None, "repetitions": None} | written["common"] | entry
    if "trials" in stated:
        del stated["repetitions"]
    if "networks" in entry or "network" in entry or item_id == "a3c-continuous":
        stated.pop("network", None)
    if "threads" in stated or item_id == "a3c-continuous":
        stated.pop("actor_learners", None)
    if entry.get("update") == "an episode":
        stated.pop("t_max")
    if "optimizers" in stated:
        stated.pop("optimizer", None)
    if "n_e" in entry:
        stated.pop("learning_rate")  # in proportion
    unknown = set(stated) - set(CHECKS) - NOT_COMPARED
    assert not unknown, "compare these fields, or name them as not compared"
    of = started(item_id)
    differing = {name for name, value in stated.items() if name in CHECKS and not CHECKS[name](of, value)}
    declared = {field: line for (name, field), line in DECLARED.items() if name == item_id}
    assert differing == set(declared)
    listed = definition.scales["paper"].differs
    for line in declared.values():
        assert any(line in entry for entry in listed), line


def test_every_figure_and_table_that_the_papers_have_is_transcribed() -> None:
    of_text_alone = {
        item.id for _, definition, item in ITEMS.values() if item.extra and "paper" not in definition.scales
    }
    assert {ITEMS[name][2].needs for name in of_text_alone} == {NO_FIGURE}
    assert of_text_alone == {"a3c-data-by-actors", "a3c-optimizers-16", "gorila-stability", "ga3c-lag"}
    labels = {
        (paper.id, LABELS.get(item.id, item.label))
        for paper, _, item in ITEMS.values()
        if item.id not in of_text_alone
    }
    written = {(name, label) for name, paper in TRANSCRIPTION["papers"].items() for label in paper["items"]}
    assert labels <= written
    assert written - labels == {("a3c", "Figure S4")}  # beside S3, with the same runs
