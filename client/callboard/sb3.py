"""A callback for Stable-Baselines3: `from callboard.sb3 import CallboardCallback`."""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, ClassVar
from weakref import WeakKeyDictionary, WeakSet

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import HParam, KVWriter, Video
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import (
    VecEnvWrapper,
    VecMonitor,
    VecNormalize,
    is_vecenv_wrapped,
)

from callboard.cleaning import as_number
from callboard.external import ExternalRun
from callboard.files import frames_of_videos
from callboard.handlers import pass_on
from callboard.starting import init

_NO_HYPERPARAMETERS = frozenset({"self", "policy", "env", "verbose", "seed", "device", "tensorboard_log"})
_RAISED = "its training has ended with an exception"
_EXCLUDED = frozenset({"callboard", "tensorboard"})

log = logging.getLogger("callboard")


class CallboardCallback(BaseCallback):  # type: ignore[misc]
    """Logs the training of a Stable-Baselines3 model to a run.

    Pass it to the model: `model.learn(100_000, callback=CallboardCallback())`. It logs what the model's
    logger writes, as often and with the same agent steps as to its other outputs (without what is excluded
    from TensorBoard), and the true return and length of each episode, from the `Monitor` around each
    environment. Training ends when Stop is pressed on the run's page.

    A run of the callback's own is `finished` when `learn` returns. If `learn` raises, it is `failed`, at the
    latest when another callback starts or the process ends, even if the script has caught the exception.
    """

    _learning: ClassVar[WeakSet[CallboardCallback]] = WeakSet()
    """Callbacks whose `learn` has begun and not returned."""
    _offsets: ClassVar[WeakKeyDictionary[Any, tuple[str | None, int]]] = WeakKeyDictionary()
    """By model: the run of its latest `learn`, and the run's agent steps when the model counted from 0."""

    def __init__(self, run: ExternalRun | None = None, verbose: int = 0, **options: Any) -> None:
        """Prepare; nothing is started.

        Args:
            run: log to this run, which stays open; default: a new run for each `learn`.
            verbose: as in the base class.
            options: options of `callboard.init`; by default the model describes itself and its settings.
        """
        super().__init__(verbose)
        self.run = run
        self._own = run is None
        self._options = options
        self._writer: _Writer | None = None
        self._outputs: list[KVWriter] = []
        self._first_step = 0
        self._lengths: list[int | None] = []
        """By environment, the agent steps of its present episode; None if it began earlier."""

    def _init_callback(self) -> None:
        self._detach("failed", _RAISED)
        for other in [*self._learning]:
            if not _is_learning(other.model):
                other._detach("failed", _RAISED)
        if self._own:
            self.run = init(**(self.describe() | self._options))
            self.run._unfinished = _RAISED
        assert self.run is not None
        self._learning.add(self)
        # A model that counts from 0 again continues a run at the run's agent steps.
        if self.model.num_timesteps == 0:
            self._offsets[self.model] = (self.run.id, self.run.agent_steps)
        of_run, offset = self._offsets.get(self.model, (self.run.id, 0))
        self._first_step = offset if of_run == self.run.id else 0
        begins = self.model.num_timesteps == 0
        self._lengths = [0 if begins else None] * self.training_env.num_envs
        self._writer = _Writer(self.run, self._first_step)
        self._outputs = self.logger.output_formats
        self._outputs.append(self._writer)
        if not is_vecenv_wrapped(self.training_env, VecMonitor) and not all(
            self.training_env.env_is_wrapped(Monitor)
        ):
            log.warning("callboard: no returns of episodes: wrap the environments in Monitor or VecMonitor")
        if _monitors_normalised_rewards(self.training_env):
            log.warning(
                "callboard: the returns of episodes are sums of normalised rewards, and so is the score: put "
                "VecMonitor below VecNormalize"
            )

    def describe(self) -> dict[str, Any]:
        """Algorithm, environment, config and seed of the model, as `callboard.init` takes them."""
        return _description(self.model)

    def _on_step(self) -> bool:
        assert self.run is not None
        steps = self._first_step + self.num_timesteps
        for at, info in enumerate(self.locals.get("infos", ())):
            # A monitor below a wrapper that repeats actions counts more.
            before = self._lengths[at]
            length = self._lengths[at] = None if before is None else before + 1
            episode = info.get("episode")
            if episode is None:
                continue
            self._lengths[at] = 0
            length = episode.get("l") if length is None else length
            self.run.episode(episode.get("r"), length, agent_steps=steps)
        return not self.run.stop_requested

    def _on_training_end(self) -> None:
        assert self.run is not None
        self._detach("stopped" if self.run.stop_requested else "finished")

    def _detach(self, state: str, reason: str | None = None) -> None:
        """Log nothing more; close a run of its own."""
        if self._writer in self._outputs:
            self._outputs.remove(self._writer)
        self._writer = None
        self._learning.discard(self)
        if self._own and self.run is not None:
            self.run.close(state, reason)


def _monitors_normalised_rewards(env: Any) -> bool:
    """Whether a VecMonitor stands above a VecNormalize that changes rewards."""
    has_monitor = False
    while isinstance(env, VecEnvWrapper):
        has_monitor |= isinstance(env, VecMonitor)
        if has_monitor and isinstance(env, VecNormalize) and env.norm_reward:
            return True
        env = env.venv
    return False


def _is_learning(model: Any) -> bool:
    """Whether a thread of this process is in a method `learn` of the model."""
    for frame in sys._current_frames().values():
        caller: FrameType | None = frame
        while caller is not None:
            if caller.f_code.co_name == "learn" and caller.f_locals.get("self") is model:
                return True
            caller = caller.f_back
    return False


class _Writer(KVWriter):  # type: ignore[misc]
    """An output of a model's logger that logs to a run."""

    def __init__(self, run: ExternalRun, first_step: int) -> None:
        self._run = run
        self._first_step = first_step
        self._not_kept: set[str] = set()

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0) -> None:
        """Log numbers as metrics and texts as lines of the run's log."""
        values = {}
        for key, value in key_values.items():
            if not _EXCLUDED.isdisjoint(key_excluded.get(key) or ()):
                continue
            if isinstance(value, str):
                self._run.text(f"{key}: {value}")
            elif as_number(value).value is not None:
                values[key] = value
            elif isinstance(value, HParam):
                self._run.config.update(value.hparam_dict)
            elif isinstance(value, Video):
                self._video(key, value, self._first_step + step)
            else:
                self._drop(key, f"it is a {type(value).__name__}")
        if values:
            self._run.log(values, agent_steps=self._first_step + step)

    def close(self) -> None:
        """Do nothing: the callback closes the run."""

    def _video(self, key: str, video: Video, agent_steps: int) -> None:
        try:
            frames = frames_of_videos(video.frames)
        except Exception as error:  # of any object at all
            pass_on(error)
            self._drop(key, str(error).removeprefix("vid_tensor: ") or type(error).__name__)
            return
        self._run.video(frames, agent_steps=agent_steps, fps=video.fps)

    def _drop(self, key: str, reason: str) -> None:
        if key not in self._not_kept:
            self._not_kept.add(key)
            log.warning("callboard: %s is not kept: %s", key, reason)


def _description(model: Any) -> dict[str, Any]:
    """Algorithm, environment, config and seed of a model, as `callboard.init` takes them."""
    try:
        [spec, *_] = model.get_env().get_attr("spec")
    except (AttributeError, NotImplementedError):  # of a vector environment of other kinds
        spec = None
    policy = {"policy": type(model.policy).__name__, "n_envs": model.n_envs}
    return {
        "algorithm": f"sb3_{type(model).__name__.lower()}",
        "environment": "unknown" if spec is None else spec.id,
        "config": policy | dict(_hyperparameters(model)),
        "seed": model.seed,
    }


def _hyperparameters(model: Any) -> Iterator[tuple[str, Any]]:
    """What a model was created with, by the names of its constructor's arguments."""
    for name in inspect.signature(type(model).__init__).parameters:
        value = getattr(model, name, None)
        if value is None or name.startswith("_") or name in _NO_HYPERPARAMETERS:
            continue
        if callable(value) and not inspect.isclass(value):
            # A schedule of what remains of the training. Its own text may have an address, which is
            # another one for each seed.
            try:
                first, last = float(value(1.0)), float(value(0.0))
            except Exception as error:  # of any object: it is no schedule, but action noise, for example
                pass_on(error)
            else:
                value = first if first == last else f"{first:g} to {last:g}"
        yield name, value
