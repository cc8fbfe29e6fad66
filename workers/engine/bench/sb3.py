"""Stable-Baselines3 with the settings that its RL Zoo documents for Atari, torch's threads as they come."""

import warnings
from contextlib import closing
from functools import partial
from typing import Any

import ale_py
import gymnasium

from workers.engine.bench.made import LEARNING_STARTS, REPLAY_CAPACITY, Made, Turns

_CALL_AGENT_STEPS = 400
"""Decisions of one call of `learn`: several of its rollouts, beside which its own preparation is nothing."""


def a2c(environment: str, *, subprocesses: bool) -> Turns:
    """A2C: 16 environments, five decisions an update, RMSProp as TensorFlow's."""
    from stable_baselines3 import A2C
    from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike

    envs = _envs(environment, 16, subprocesses=subprocesses)
    model = A2C(
        "CnnPolicy",
        envs,
        ent_coef=0.01,
        vf_coef=0.25,
        policy_kwargs={"optimizer_class": RMSpropTFLike, "optimizer_kwargs": {"eps": 1e-5}},
        device="cpu",
    )
    return _trained(model, envs)


def dqn(environment: str) -> Turns:
    """DQN: one environment, a minibatch of 32 every four decisions."""
    from stable_baselines3 import DQN

    envs = _envs(environment, 1, subprocesses=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its advice on memory
        model = DQN(
            "CnnPolicy",
            envs,
            buffer_size=REPLAY_CAPACITY,
            learning_rate=1e-4,
            batch_size=32,
            learning_starts=LEARNING_STARTS,
            target_update_interval=1_000,
            train_freq=4,
            gradient_steps=1,
            exploration_final_eps=0.01,
            device="cpu",
        )
    return _trained(model, envs, learning_starts=LEARNING_STARTS)


def _envs(environment: str, n: int, *, subprocesses: bool) -> Any:
    from stable_baselines3.common.env_util import make_atari_env
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecFrameStack

    envs = make_atari_env(
        partial(_game, environment),
        n_envs=n,
        seed=0,
        vec_env_cls=SubprocVecEnv if subprocesses else DummyVecEnv,
    )
    return VecFrameStack(envs, n_stack=4)


def _game(environment: str, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    """The Zoo's NoFrameskip-v4, under today's name; made in whatever process it lives in."""
    gymnasium.register_envs(ale_py)
    return gymnasium.make(environment, frameskip=1, repeat_action_probability=0.0, **kwargs)


def _trained(model: Any, envs: Any, *, learning_starts: int = 0) -> Turns:
    with closing(envs):
        if learning_starts:
            model.learn(learning_starts)
        while True:
            before = model.num_timesteps
            model.learn(_CALL_AGENT_STEPS, reset_num_timesteps=False)
            yield Made(model.num_timesteps - before)
