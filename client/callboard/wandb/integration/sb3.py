"""W&B's callback for Stable-Baselines3, logging to the run of `wandb.init`."""

from __future__ import annotations

import os

from callboard.sb3 import CallboardCallback
from callboard.wandb.active import ACTIVE
from callboard.wandb.errors import UsageError


class WandbCallback(CallboardCallback):
    """Logs a model's training to the run of `wandb.init`, and stores the model with it."""

    def __init__(
        self,
        verbose: int = 0,
        model_save_path: str | None = None,
        model_save_freq: int = 0,
        gradient_save_freq: int = 0,
        log: str | None = "all",
    ) -> None:
        """Prepare.

        Args:
            verbose: as in the base class.
            model_save_path: folder for the model's file.
            model_save_freq: calls of `step` between two files; 0: only one, at the end.
            gradient_save_freq: said once: gradients are not kept.
            log: see `gradient_save_freq`.

        Raises:
            UsageError: `wandb.init` has not been called.
        """
        active = ACTIVE.get("run")
        if active is None:
            raise UsageError("WandbCallback: call wandb.init() first")
        super().__init__(active.share(), verbose)
        self._wandb = active
        active.foreign.arguments("WandbCallback", {"gradient_save_freq": gradient_save_freq or None})
        self._folder, self._every = model_save_path, model_save_freq

    def _init_callback(self) -> None:
        if self.run is None:
            return
        super()._init_callback()
        described = self.describe()
        self.run.config.update(described.pop("config"))
        self.run._describe(
            {name: value for name, value in described.items() if value not in (None, "unknown")}
        )

    def _on_step(self) -> bool:
        if self.run is None:
            return True
        if self._folder is not None and self._every > 0 and self.n_calls % self._every == 0:
            self._save()
        return super()._on_step()

    def _on_training_end(self) -> None:
        if self._folder is not None:
            self._save()
        if self.run is not None:
            super()._on_training_end()

    def _save(self) -> None:
        assert self._folder is not None
        os.makedirs(self._folder, exist_ok=True)
        path = os.path.join(self._folder, "model.zip")
        self.model.save(path)
        self._wandb.save(path)


__all__ = ["WandbCallback"]
