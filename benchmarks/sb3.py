"""Stable-Baselines3 with its RL Zoo's hyperparameters for Atari and torch's default threads."""

import warnings
from contextlib import closing
from functools import partial
from typing import Any

import ale_py
import gymnasium

from benchmarks.rows import LEARNING_STARTS, REPLAY_CAPACITY, RowGenerator, RowProgress

_CALL_AGENT_STEPS = 400
"""Decisions per call of `learn`: several rollouts, so that its set-up time is negligible."""


def a2c(environment: str, *, subprocesses: bool, device: str = "cpu") -> RowGenerator:
    """A2C: 16 environments, five decisions an update, RMSProp like TensorFlow's."""
    from stable_baselines3 import A2C
    from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike

    envs = _envs(environment, 16, subprocesses=subprocesses)
    model = A2C(
        "CnnPolicy",
        envs,
        ent_coef=0.01,
        vf_coef=0.25,
        policy_kwargs={"optimizer_class": RMSpropTFLike, "optimizer_kwargs": {"eps": 1e-5}},
        device=device,
    )
    return _trained(model, envs)


def dqn(environment: str, *, device: str = "cpu") -> RowGenerator:
    """DQN: one environment, a minibatch of 32 every four decisions."""
    from stable_baselines3 import DQN

    envs = _envs(environment, 1, subprocesses=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice about memory
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
            device=device,
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
        # Forked, before the model uses a device: otherwise each process would import PyTorch.
        vec_env_kwargs={"start_method": "fork"} if subprocesses else None,
    )
    return VecFrameStack(envs, n_stack=4)


def _game(environment: str, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    """The Zoo's NoFrameskip-v4 under its current name; created in the environment's own process."""
    gymnasium.register_envs(ale_py)
    return gymnasium.make(environment, frameskip=1, repeat_action_probability=0.0, **kwargs)


def _trained(model: Any, envs: Any, *, learning_starts: int = 0) -> RowGenerator:
    with closing(envs):
        if learning_starts:
            model.learn(learning_starts)
        while True:
            before = model.num_timesteps
            model.learn(_CALL_AGENT_STEPS, reset_num_timesteps=False)
            yield RowProgress(model.num_timesteps - before)
