"""The catalogue: the specs, which do not change while the process runs, and hosts' custom environments."""

from collections.abc import Mapping
from dataclasses import asdict
from functools import cache

from sqlalchemy.orm import Session

from backend.fleet.hosts import repository as hosts
from backend.runs.catalogue.schemas import AlgorithmOut, CommandOut, EnvironmentOut
from backend.specs.algorithms import ALGORITHMS, Algorithm
from backend.specs.environments import ENVIRONMENTS, Environment
from backend.specs.environments.custom import CustomEnvironment
from backend.specs.protocols import protocols_of


@cache
def algorithms() -> dict[str, AlgorithmOut]:
    """Every algorithm, by id."""
    return {algorithm.id: _algorithm(algorithm) for algorithm in ALGORITHMS.values()}


def environments(session: Session) -> dict[str, EnvironmentOut]:
    """Every environment, by id; hosts' custom ones last."""
    return with_custom(hosts.custom_environments(session))


def commands(session: Session) -> list[CommandOut]:
    """Every command of the hosts, by name."""
    return [
        CommandOut(
            name=name,
            title=command.title or name,
            summary=command.summary,
            algorithm=command.algorithm or name,
            environment=command.environment,
            has_seed=command.seed,
            config_schema=command.config_schema,
            defaults=command.config({}),
            definition=command.definition or "",
            hosts=names,
            other_hosts=others,
        )
        for name, (command, names, others) in sorted(hosts.commands(session).items())
    ]


def with_custom(custom: Mapping[str, tuple[CustomEnvironment, list[str]]]) -> dict[str, EnvironmentOut]:
    """Every built-in environment, by id, then these custom ones with their hosts."""
    return _built_in() | {
        name: _environment(environment.environment(), at) for name, (environment, at) in custom.items()
    }


@cache
def _built_in() -> dict[str, EnvironmentOut]:
    return {environment.id: _environment(environment, []) for environment in ENVIRONMENTS.values()}


def _algorithm(algorithm: Algorithm) -> AlgorithmOut:
    return AlgorithmOut.model_validate(
        {
            "id": algorithm.id,
            "title": algorithm.title,
            "summary": algorithm.summary,
            "paper": algorithm.paper,
            "observations": list(algorithm.observations),
            "actions": list(algorithm.actions),
            "reproducibility": algorithm.reproducibility,
            "config_schema": algorithm.config.model_json_schema(),
            "defaults": {
                observation if actions == "discrete" else f"continuous {observation}": algorithm.defaults(
                    observation, actions
                )
                for observation in algorithm.observations
                for actions in algorithm.actions
            },
            "evaluation_protocol": algorithm.evaluation_protocol,
            "presets": [asdict(preset) for preset in algorithm.presets],
            "extra": algorithm.extra,
        }
    )


def _environment(environment: Environment, hosts: list[str]) -> EnvironmentOut:
    return EnvironmentOut.model_validate(
        {
            "id": environment.id,
            "title": environment.title,
            "family": environment.family,
            "summary": environment.summary,
            "observation": environment.observation,
            "observation_shape": environment.observation_shape and list(environment.observation_shape),
            "config_schema": environment.config.model_json_schema(),
            "defaults": environment.config().model_dump(mode="json"),
            "evaluation_protocol": environment.protocols[0],
            "evaluation_protocols": [
                protocol.id
                for protocol in protocols_of(environment.protocols)
                if protocol.unavailable is None
            ],
            "frames_per_agent_step": environment.frames_per_agent_step,
            "actions": environment.actions,
            "action_names": list(environment.action_names),
            "published": [asdict(score) for score in environment.published],
            "config_defaults": environment.config_defaults,
            "crop_hides": environment.crop_hides,
            "hosts": hosts,
            "extra": environment.extra,
        }
    )
