"""transformers' `report_to="wandb"`, by `callboard.wandb.install()`."""

import json
import os
from typing import Any

REQUIREMENTS = ("transformers==5.24.0", "accelerate==1.15.0", "torch==2.13.0")


def train() -> dict[str, Any]:
    """Train; what the library says of it."""
    import callboard.wandb

    callboard.wandb.install()
    import torch
    import wandb
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    class Tokens(torch.utils.data.Dataset):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return 32

        def __getitem__(self, index: int) -> dict[str, Any]:
            return {"input_ids": torch.randint(0, 50, (8,)), "labels": torch.tensor(index % 2)}

    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    model = BertForSequenceClassification(BertConfig(vocab_size=50, max_position_embeddings=16, **sizes))
    wandb.init(name="hf", group=os.environ["LIBRARY_GROUP"], algorithm="bert", environment="toy")
    arguments = TrainingArguments(
        "out", report_to="wandb", max_steps=12, logging_steps=2, use_cpu=True, save_strategy="no", seed=9
    )
    trainer = Trainer(model, arguments, train_dataset=Tokens())
    trainer.train()
    wandb.finish()
    return {
        "name": "hf",
        "algorithm": "bert",
        "seed": 9,
        "state": "finished",
        "step_unit": "iterations",
        "agent_steps": trainer.state.global_step,
        "config": {"hidden_size": 16, "max_steps": 12},
    }


if __name__ == "__main__":
    print(json.dumps([train()]))  # noqa: T201
