"""The environments of a study and the protocols of its evaluations."""

from collections.abc import Mapping

from backend.db import Experiment
from backend.experiments.specs.study import StudySpec
from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS, Environment
from backend.specs.environments.custom import CustomEnvironment


def environments_of(study: Experiment) -> dict[str, Environment]:
    """The environments of a stored study, by id; its hosts described the custom ones."""
    custom = study.spec.get("custom") or {}
    described = {
        name: CustomEnvironment.model_validate(custom[name]).environment() for name in custom if custom[name]
    }
    return {
        name: ENVIRONMENTS[name] for name in study.spec["environments"] if name in ENVIRONMENTS
    } | described


def protocols_of(
    spec: StudySpec, arm_number: int, environments: Mapping[str, Environment] = ENVIRONMENTS
) -> dict[str, str]:
    """The protocol of an arm's evaluations on each environment, of those that are known here."""
    protocols = {}
    arm = spec.arms[arm_number]
    for name in spec.environments:
        environment = environments.get(name)
        algorithm = ALGORITHMS.get(arm.algorithm)
        own = str(arm.config.get("evaluation_protocol", "auto"))
        chosen = spec.starts.get(name, own)
        if environment is not None and algorithm is not None and chosen == "auto":
            config = environment.config.model_validate(arm.environment_config)
            chosen = environment.default_protocol(algorithm.evaluation_protocol, config)
        protocols[name] = chosen
    return protocols
