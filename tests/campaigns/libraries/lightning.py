"""Lightning's `WandbLogger`, by `callboard.wandb.install()`."""

import json
import os
from typing import Any

REQUIREMENTS = ("lightning==2.6.6", "torch==2.13.0")


def train() -> dict[str, Any]:
    """Train; what the library says of it."""
    import callboard.wandb

    callboard.wandb.install()
    import lightning
    import torch
    from lightning.pytorch.loggers import WandbLogger

    class Model(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self, lr: float = 0.1, env_id: str = "Toy-v0", seed: int = 5) -> None:
            super().__init__()
            self.save_hyperparameters()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch: Any, index: int) -> Any:
            loss = self.layer(batch[0]).pow(2).mean()
            self.log("train/loss", loss)
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    data = torch.utils.data.TensorDataset(torch.randn(64, 4))
    logger = WandbLogger(name="fit", group=os.environ["LIBRARY_GROUP"], log_model=True)
    trainer = lightning.Trainer(max_epochs=2, logger=logger, log_every_n_steps=1, accelerator="cpu")
    trainer.fit(Model(), torch.utils.data.DataLoader(data, batch_size=8))
    logger.experiment.finish()
    return {
        "name": "fit",
        "environment": "Toy-v0",
        "seed": 5,
        "state": "finished",
        "step_unit": "iterations",
        "agent_steps": trainer.global_step - 1,  # Lightning's steps begin at 0
        "config": {"lr": 0.1},
    }


if __name__ == "__main__":
    print(json.dumps([train()]))  # noqa: T201
