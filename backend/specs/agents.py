"""Exported agents: what their model card states, and the texts of the folder that they are exported as.

The folder is laid out as the Hugging Face Hub and RL Zoo have it: `README.md` with the front matter
`model-index`, `config.yml`, `results.json`, `replay.mp4`, beside `model.safetensors` or `model.onnx`.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from backend.specs.algorithms import ALGORITHMS
from backend.specs.fields import LICENCE, Frozen
from backend.specs.run import RunSpec

AgentFormat = Literal["safetensors", "onnx"]

WEIGHTS: dict[AgentFormat, str] = {"safetensors": "model.safetensors", "onnx": "model.onnx"}
"""File of the network in each format."""
DESCRIBED = ("algorithm", "package", "environment", "config", "environment_config", "custom")
"""Fields of a run's specification that decide how its agent observes and acts."""
DESCRIPTION = "callboard_agent"
"""Key of the network's file whose text is the description of the agent."""
CARD = "callboard_card"
"""Key of the network's file whose text is the card."""
MAX_WEIGHTS_BYTES = 2 * 2**30
"""Maximum size of a network's file."""

Licence = Annotated[str, Field(pattern=LICENCE, examples=["mit"])]
"""Identifier of a licence, as the Hub writes them."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class AgentScore(Frozen):
    """The score of one evaluation of the checkpoint."""

    protocol: str
    n_episodes: int
    seed: int | None
    """Seed of the evaluation; None if the engine chose it."""
    mean_return: float
    std_return: float
    low: float | None
    high: float | None
    """Interval of the median return over the episodes; None with too few."""
    median_return: float
    is_greedy: bool
    evaluated_at: str


class SeedScore(Frozen):
    """The score of a configuration over the seeds of its runs."""

    measured_by: Literal["training", "evaluation"]
    seeds: list[int]
    median: float | None
    low: float | None
    high: float | None
    interval: str


class AgentCard(Frozen):
    """What is known of a checkpoint's agent."""

    run: str
    """Id of its run."""
    name: str
    """Name of its run."""
    checkpoint: str
    """Name of the checkpoint's file."""
    sha256: str
    agent_steps: int = Field(ge=0, le=10**15)
    frames: int = Field(ge=0, le=10**15)
    wall_time_s: float = Field(ge=0, le=10**10)
    seed: int = Field(ge=0, le=2**63 - 1)
    device: str | None
    departures: list[str]
    """How its training departs from its specification."""
    scores: list[AgentScore]
    over_seeds: SeedScore | None
    versions: dict[str, str]
    """Version of each package on the host that trained it."""
    commit: str | None
    licence: Licence | None = None


def description_of(spec: RunSpec) -> str:
    """The fields of a specification that decide how its agent observes and acts, as JSON."""
    return spec.model_dump_json(include=set(DESCRIBED))


def readme(card: AgentCard, spec: RunSpec, file_format: AgentFormat, *, video: bool) -> str:
    """The model card: front matter for the Hub, and a page for people."""
    algorithm, best = ALGORITHMS[spec.algorithm], _headline(card)
    front: dict[str, Any] = {
        "library_name": "callboard",
        "tags": [
            spec.environment,
            "deep-reinforcement-learning",
            "reinforcement-learning",
            "callboard",
            spec.algorithm,
            file_format,
        ],
    }
    if card.licence is not None:
        front["license"] = card.licence
    if best is not None:
        metric = {
            "type": "mean_reward",
            "value": f"{best.mean_return:.2f} +/- {best.std_return:.2f}",
            "name": "mean_reward",
            "verified": False,
        }
        result = {
            "task": {"type": "reinforcement-learning", "name": "reinforcement-learning"},
            "dataset": {"name": spec.environment, "type": spec.environment},
            "metrics": [metric],
        }
        front["model-index"] = [{"name": spec.algorithm, "results": [result]}]
    title = f"{algorithm.title} on {spec.environment}"
    environment = spec.environment_config.model_dump(mode="json")
    page = [
        "---",
        *yaml_lines(front),
        "---",
        "",
        f"# {title}",
        "",
        f"An agent that Callboard has trained for {card.agent_steps:,} agent steps ({card.frames:,} emulator "
        f"frames, {card.wall_time_s:,.0f} s) with "
        f"the seed {card.seed}. Run {card.run}, checkpoint `{card.checkpoint}`, SHA-256 `{card.sha256}`.",
        "",
        *(["The file `replay.mp4` shows an episode of this agent.", ""] if video else []),
        "## Scores",
        "",
        *_score_lines(card),
        "",
        "## Use",
        "",
        *_USE[file_format],
        "",
        "## Method",
        "",
        f"{algorithm.title}: {algorithm.summary}" if algorithm.summary else algorithm.title,
        "",
        *_differences(card),
        "`config.yml` has every setting.",
        "",
        "## Environment",
        "",
        f"`{spec.environment}` with this preprocessing:",
        "",
        *_table(("setting", "value"), [(name, json.dumps(value)) for name, value in environment.items()]),
        "",
        "## Versions",
        "",
        *_table(("package", "version"), sorted(card.versions.items())),
        "",
        "## Licence",
        "",
        f"`{card.licence}`." if card.licence else "Not chosen: add `license:` to the front matter.",
    ]
    return "\n".join(page) + "\n"


def config_yml(spec: RunSpec, card: AgentCard) -> str:
    """`config.yml`: every setting of the run."""
    described = spec.model_dump(mode="json", include={*DESCRIBED, "seed", "stop"})
    return "\n".join(yaml_lines(described | {"seed": card.seed})) + "\n"


def results_json(card: AgentCard) -> str:
    """`results.json`: RL Zoo's fields of the best evaluation, and all that are known."""
    best = _headline(card)
    zoo = {
        "mean_reward": best and best.mean_return,
        "std_reward": best and best.std_return,
        "is_deterministic": best and best.is_greedy,
        "n_eval_episodes": best and best.n_episodes,
        "eval_datetime": best and best.evaluated_at,
    }
    more = card.model_dump(mode="json", include={"agent_steps", "frames", "scores", "over_seeds"})
    return json.dumps(zoo | more, indent=2) + "\n"


def yaml_lines(values: dict[str, Any]) -> list[str]:
    """JSON values as YAML, which readers of YAML 1.1 and 1.2 read alike."""
    return list(_mapping(values, ""))


def _mapping(values: dict[str, Any], indent: str) -> Iterator[str]:
    for key, value in values.items():
        name = key if _PLAIN.fullmatch(key) or key == "model-index" else json.dumps(key)
        if isinstance(value, dict) and value:
            yield f"{indent}{name}:"
            yield from _mapping(value, f"{indent}  ")
        elif isinstance(value, list) and value:
            yield f"{indent}{name}:"
            for item in value:
                if isinstance(item, dict):
                    first, *others = _mapping(item, f"{indent}  ")
                    yield f"{indent}- {first.lstrip()}"
                    yield from others
                else:
                    yield f"{indent}- {_scalar(item)}"
        else:
            yield f"{indent}{name}: {_scalar(value)}"


def _scalar(value: Any) -> str:
    """JSON, but for numbers such as 1e-05: YAML 1.1 reads one without a point as text."""
    text = json.dumps(value)
    if isinstance(value, float) and "e" in text and "." not in text:
        return text.replace("e", ".0e")
    return text


def _headline(card: AgentCard) -> AgentScore | None:
    """The score in the front matter: of the most episodes, the latest of them."""
    return max(card.scores, key=lambda score: (score.n_episodes, score.evaluated_at), default=None)


def _score_lines(card: AgentCard) -> list[str]:
    lines = ["This checkpoint has not been evaluated."]
    if card.scores:
        columns = ("protocol", "episodes", "seed", "mean ± deviation", "median [interval]")
        rows = [
            (
                score.protocol,
                str(score.n_episodes),
                "" if score.seed is None else str(score.seed),
                f"{score.mean_return:.2f} ± {score.std_return:.2f}",
                f"{score.median_return:.2f}{_interval(score.low, score.high)}",
            )
            for score in card.scores
        ]
        lines = [*_table(columns, rows), "", "Returns of whole episodes, unclipped."]
    seeds = card.over_seeds
    if seeds is not None and seeds.median is not None:
        what = "evaluations" if seeds.measured_by == "evaluation" else "training"
        lines += [
            "",
            f"The same configuration over {len(seeds.seeds)} seeds ({', '.join(map(str, seeds.seeds))}), by "
            f"the scores of {what}: median {seeds.median:.2f}{_interval(seeds.low, seeds.high)}. "
            f"Intervals: {seeds.interval}.",
        ]
    return lines


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" [{low:.2f}, {high:.2f}]"


def _differences(card: AgentCard) -> list[str]:
    if not card.departures:
        return []
    departures = [f"- {text}" for text in card.departures]
    return ["How the training departs from these settings:", "", *departures, ""]


def _table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    cells = [columns, ("---",) * len(columns), *rows]
    return [f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in cells]


_USE: dict[AgentFormat, list[str]] = {
    "safetensors": [
        "```python",
        "from callboard_environments.agents import load_exported_agent",
        "",
        'agent = load_exported_agent(".")  # this folder',
        "env = agent.make_env()",
        "observation, _ = env.reset(seed=0)",
        "observation, reward, terminated, truncated, _ = env.step(agent.act(observation))",
        "```",
    ],
    "onnx": [
        "```python",
        "import onnxruntime",
        "",
        'session = onnxruntime.InferenceSession("model.onnx")',
        "inputs = [(value.name, value.shape) for value in session.get_inputs()]",
        "```",
        "",
        "The input `observation` is what the environment returns with the preprocessing below, stacked along "
        "the first axis. Each other input is memory: zeros at the start of an episode, then the output with "
        "`next_` before its name. A greedy agent takes the action of the highest `logits` or `q`, or `mu` "
        "clipped to the bounds; a sampled one draws from the softmax of `logits`, or from a normal "
        "distribution with `mu` and `sigma`.",
    ],
}


class ExportedAgent(BaseModel):
    """What the engine prints about an agent that it has exported."""

    n_bytes: int
    """Size of the network's file."""
    no_video: str | None
    """Why there is no video; None if there is one."""
