"""What the names of folders say of a training: environment, algorithm and seed, as libraries choose them."""

from __future__ import annotations

import re
from pathlib import Path

_PARTS = 4
"""Last folders of a path that may describe a training."""
_SEED_PARTS = 2
"""Those that may have a seed in any name."""
_ENVIRONMENT = r"(?P<environment>[A-Za-z][\w:.-]*-v\d+)"
_SB3 = "A2C|ARS|CrossQ|DDPG|DQN|HER|MaskablePPO|PPO|QRDQN|RecurrentPPO|SAC|TD3|TQC|TRPO"
_DATE = r"\d{2,4}[-_]\d{2}[-_]\d{2}[-_]\d{2}[-_]\d{2}[-_]\d{2}[-_.\w]*?"

NAMES = (
    ("CleanRL", r"(?P<environment>[^/]+?)__(?P<algorithm>[^/]+?)__((?P<seed>\d{1,9})|[^/]*?)(__[^/]*)?", ""),
    ("Stable-Baselines3", rf"({_ENVIRONMENT}/)?(?P<algorithm>{_SB3})_\d+", "sb3_"),
    ("RL Zoo", rf"(?P<algorithm>{_SB3.lower()})/{_ENVIRONMENT}_\d+", "sb3_"),
    ("Ray Tune", rf"(?P<algorithm>[A-Za-z]\w*?)_{_ENVIRONMENT}_[0-9a-f]{{5}}_\d{{5}}_[^/]*", ""),
    ("Ray Tune", r"(?P<algorithm>[A-Za-z][A-Za-z0-9]*)_[^/]+_[0-9a-f]{5}(_[^/]*)?", ""),
    ("RLlib", rf"(?P<algorithm>[A-Z]\w*?)_{_ENVIRONMENT}_{_DATE}", ""),
    ("tianshou", rf"{_ENVIRONMENT}/(?P<algorithm>[a-z][\w-]*)/(?P<seed>\d{{1,9}})/\d{{6}}-\d{{6}}", ""),
    ("TorchRL", rf"(?P<algorithm>[A-Za-z]\w*?)_(?P<environment>[A-Za-z][\w-]*?)_[0-9a-f]{{8}}_{_DATE}", ""),
    ("skrl", rf"{_DATE}_(?P<algorithm>[A-Z][A-Z0-9_]*)", "skrl_"),
)
"""Library, what the last folders of a training are called, and what Callboard's names of its algorithms begin
with. The first that fits counts."""

_PATTERNS = [(re.compile(rf"(?:.*?/)?{pattern}"), prefix) for _, pattern, prefix in NAMES]
_SEED = re.compile(r"(?:.*[/_.-])?seed[_=-]?(\d{1,9})(?:[/_.-].*)?", re.IGNORECASE)


def described_by_folder(folder: Path) -> dict[str, str | int]:
    """Environment, algorithm and seed, as far as the names of a training's folder and those above it say."""
    path = "/".join(folder.parts[-_PARTS:])
    fields: dict[str, str | int] = {}
    for pattern, prefix in _PATTERNS:
        if (match := pattern.fullmatch(path)) is not None:
            texts = {name: text for name, text in match.groupdict().items() if text}
            fields = {name: int(text) if name == "seed" else text for name, text in texts.items()}
            if prefix:
                fields["algorithm"] = f"{prefix}{texts['algorithm'].lower()}"
            break
    if "seed" not in fields and (seed := _SEED.fullmatch("/".join(folder.parts[-_SEED_PARTS:]))):
        fields["seed"] = int(seed[1])
    return fields
