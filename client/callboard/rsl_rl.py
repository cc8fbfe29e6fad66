"""A writer for rsl_rl, with which Isaac Lab trains.

In the runner's settings: `logger: {class_name: callboard.rsl_rl:CallboardLogWriter}`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from rsl_rl.utils.log_writer import LogWriter

from callboard.config import UNKNOWN, plain_word
from callboard.external import ExternalRun
from callboard.limits import MAX_ALGORITHM, MAX_ENVIRONMENT
from callboard.starting import init
from callboard.tally import warn

_SECONDS = "/time"
"""Ends the tags that repeat a metric by whole seconds."""


class CallboardLogWriter(LogWriter):  # type: ignore[misc]
    """Logs the training of rsl_rl's runners to a run, with iterations as steps.

    The runner's settings are the config, its algorithm and seed those of the run; models, files and
    videos are stored with it. The run ends with `stop`, or with the process.
    """

    def __init__(
        self,
        log_dir: str,
        *,
        run: ExternalRun | None = None,
        agent_steps_per_iteration: int | None = None,
        **options: Any,
    ) -> None:
        """Start a run.

        Args:
            log_dir: a folder whose last part names the run. Nothing is written there.
            run: log to this run, which stays open, instead of starting one.
            agent_steps_per_iteration: environments times steps of each in an iteration; the run then counts
                agent steps.
            options: others of `callboard.init`.
        """
        self._own = run is None
        self._factor = agent_steps_per_iteration or 1
        if run is None:
            fields: dict[str, Any] = {
                "name": os.path.basename(os.path.normpath(log_dir)),
                "algorithm": UNKNOWN,
            }
            fields |= {"environment": UNKNOWN, "return_metric": "Train/mean_reward"}
            fields["step_unit"] = "iterations" if agent_steps_per_iteration is None else "agent_steps"
            run = init(**fields | options)
        self.run = run
        self._videos: set[str] = set()
        self._has_seconds = False

    def add_scalar(self, tag: str, scalar_value: Any, global_step: int, **options: Any) -> None:
        """Log a value. Tags that end in `/time` repeat others by whole seconds, and are left out."""
        if tag.endswith(_SECONDS):
            if not self._has_seconds:
                self._has_seconds = True
                warn("callboard: rsl_rl's tags that end in /time are left out: points have training times")
            return
        self.run.log({tag: scalar_value}, agent_steps=global_step * self._factor)

    def store_config(self, env_cfg: Any, train_cfg: Mapping[str, Any]) -> None:
        """Add the settings of the runner, and then those of the environment, if they are few enough."""
        algorithm = _get(train_cfg, "algorithm", "class_name")
        environment = (
            _get(env_cfg, "task_name") or _get(env_cfg, "env_id") or train_cfg.get("experiment_name")
        )
        described: dict[str, Any] = {"seed": train_cfg.get("seed")}
        if isinstance(algorithm, str):
            described["algorithm"] = plain_word(f"rsl_rl_{algorithm.lower()}", MAX_ALGORITHM)
        if isinstance(environment, str) and environment:
            described["environment"] = plain_word(environment, MAX_ENVIRONMENT)
        self.run._describe({name: value for name, value in described.items() if value is not None})
        self.run.config.update(dict(train_cfg))
        with suppress(Exception):  # of any object
            settings = env_cfg.to_dict() if hasattr(env_cfg, "to_dict") else env_cfg
            self.run.config.update(
                {"env_cfg": asdict(settings) if is_dataclass(type(settings)) else dict(settings)}
            )

    def save_model(self, model_path: str, it: int) -> None:
        """Store a checkpoint."""
        self.run.checkpoint(model_path, agent_steps=it * self._factor)

    def save_file(self, path: str) -> None:
        """Store a file."""
        self.run.checkpoint(path)

    def save_video(self, video: Path, it: int) -> None:
        """Show a video, once by its name."""
        if video.name not in self._videos:
            self._videos.add(video.name)
            self.run.video(video, agent_steps=it * self._factor)

    def stop(self) -> None:
        """End the run as finished; one that was passed as `run` stays open."""
        if self._own:
            self.run.close()


def _get(settings: Any, *names: str) -> Any:
    """A setting of nested mappings or objects; None if there is none."""
    for name in names:
        settings = settings.get(name) if isinstance(settings, Mapping) else getattr(settings, name, None)
    return settings
