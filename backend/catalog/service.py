"""The catalogue: read off the specs, which cannot change while the process runs, and hosts' own worlds."""

from dataclasses import asdict
from functools import cache

from sqlalchemy.orm import Session

from backend.catalog.schemas import AlgorithmOut, EnvironmentOut
from backend.hosts.repository import own_worlds
from backend.specs.algorithms import ALGORITHMS, Algorithm
from backend.specs.environments import ENVIRONMENTS, Environment


@cache
def algorithms() -> dict[str, AlgorithmOut]:
    """Every algorithm, by id."""
    return {algorithm.id: _algorithm(algorithm) for algorithm in ALGORITHMS.values()}


def environments(session: Session) -> dict[str, EnvironmentOut]:
    """Every world, by id; hosts' own ones last."""
    own = {name: _environment(world.environment(), at) for name, (world, at) in own_worlds(session).items()}
    return _shipped() | own


@cache
def _shipped() -> dict[str, EnvironmentOut]:
    return {world.id: _environment(world, []) for world in ENVIRONMENTS.values()}


def _algorithm(algorithm: Algorithm) -> AlgorithmOut:
    return AlgorithmOut.model_validate(
        {
            "id": algorithm.id,
            "title": algorithm.title,
            "summary": algorithm.summary,
            "paper": algorithm.paper,
            "observations": list(algorithm.observations),
            "actions": list(algorithm.actions),
            "config_schema": algorithm.config.model_json_schema(),
            "defaults": {
                observation if actions == "discrete" else f"continuous {observation}": algorithm.defaults(
                    observation, actions
                )
                for observation in algorithm.observations
                for actions in algorithm.actions
            },
            "presets": [asdict(preset) for preset in algorithm.presets],
        }
    )


def _environment(world: Environment, hosts: list[str]) -> EnvironmentOut:
    return EnvironmentOut.model_validate(
        {
            "id": world.id,
            "title": world.title,
            "family": world.family,
            "summary": world.summary,
            "observation": world.observation,
            "observation_shape": world.observation_shape and list(world.observation_shape),
            "config_schema": world.config.model_json_schema(),
            "defaults": world.config().model_dump(mode="json"),
            "evaluation_protocol": world.evaluation_protocol,
            "frames_per_agent_step": world.frames_per_agent_step,
            "actions": world.actions,
            "action_names": list(world.action_names),
            "published": [asdict(score) for score in world.published],
            "config_defaults": world.config_defaults,
            "hosts": hosts,
        }
    )
