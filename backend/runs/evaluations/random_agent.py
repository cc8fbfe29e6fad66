"""Evaluations of a random agent: each is a run of the algorithm `random`, so that it has what runs have."""

from collections.abc import Sequence

from backend.db import Run
from backend.db.engine import UnitOfWork
from backend.platform.errors import Invalid
from backend.platform.principals import Principal
from backend.runs.evaluations.schemas import RandomEvaluationRequest
from backend.runs.runs import requests
from backend.runs.starts import service as starts
from backend.specs.algorithms.random import FRAMES_AT_10_HZ, RANDOM
from backend.specs.environments import ENVIRONMENTS
from backend.specs.problems import FieldProblem, InvalidSpec


def create(work: UnitOfWork, request: RandomEvaluationRequest, principal: Principal) -> Run:
    """Create the run of a random agent, which takes one decision and is evaluated.

    Raises:
        Invalid: with one problem per invalid field; nothing is stored.
    """
    known = ENVIRONMENTS.get(request.environment)
    is_atari = known is not None and known.family == "atari"
    rate = request.rate or ("10_hz" if is_atari else "each_decision")
    config = dict(request.environment_config)
    if rate == "10_hz":
        if not is_atari:
            message = "10_hz is for Atari games, which have 60 frames a second: use each_decision"
            raise Invalid.field("rate", message)
        if config.setdefault("frame_skip", FRAMES_AT_10_HZ) != FRAMES_AT_10_HZ:
            message = (
                f"10_hz is a new action every {FRAMES_AT_10_HZ} frames: leave it out, or use each_decision"
            )
            raise Invalid.field("environment_config.frame_skip", message)
    body = {
        "algorithm": RANDOM.id,
        "environment": request.environment,
        "environment_config": config,
        "config": {
            "evaluation_protocol": request.protocol or "auto",
            "evaluation_episodes": request.episodes,
        },
        "seed": request.seed,
        "stop": {"agent_steps": 1},
    }
    try:
        [run] = requests.create(work, body, principal)
    except InvalidSpec as error:
        raise Invalid(_renamed(error.problems)) from None
    except Invalid as error:
        raise Invalid(_renamed(error.errors)) from None
    return run


def _renamed(problems: Sequence[FieldProblem]) -> list[FieldProblem]:
    """The problems of a run's request, with the fields of one for a random agent."""
    return [
        FieldProblem(field="protocol", message=problem.message)
        if problem.field == starts.EVALUATION_PROTOCOL
        else problem
        for problem in problems
    ]
