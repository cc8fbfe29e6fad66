"""Where a default comes from: a paper's constant, beside the default that uses it.

`python -m backend.runs.catalogue.constants_page > docs/constants.md` writes the table.

Papers, as the sources name them:
- Mnih 2016: Asynchronous Methods for Deep Reinforcement Learning; sections of its supplement as S7, S8, S9.
- Clemente 2017: Efficient Parallel Methods for Deep Reinforcement Learning (PAAC).
- Babaeizadeh 2017: Reinforcement Learning through Asynchronous Advantage Actor-Critic on a GPU (GA3C).
- Nair 2015: Massively Parallel Methods for Deep Reinforcement Learning (Gorila).
- Mnih 2015: Human-level control through deep reinforcement learning (DQN).
- code: the published code of the paper's authors, where the paper prints nothing.
"""

from typing import Any, NamedTuple

AS_DEFAULT: Any = object()
"""Stands for a source's value that equals the default beside it, so that the value is written once."""


class Source(NamedTuple):
    """What a paper has for a setting."""

    where: str
    """Paper and section; empty if no paper has it."""
    value: Any = AS_DEFAULT
    """The paper's value, in this project's units and names, where the default is another one; None if the
    paper prints none."""
    note: str = ""
    """Why the default differs, or why there is one although no paper has it."""

    def printed(self, default: Any) -> Any:
        """The paper's value, given the setting's default; None if the paper prints none."""
        return default if self.value is AS_DEFAULT else self.value


Sources = dict[str, Source]
"""Setting -> its source."""


def ours(note: str, where: str = "") -> Source:
    """A setting whose value no paper prints; `where` if a paper has the setting without a value."""
    return Source(where, None, note)


S7, S8, S9 = (f"Mnih 2016, {section}" for section in ("S7", "S8", "S9"))
CLEMENTE_2017, MNIH_2015 = "Clemente 2017, 5.1", "Mnih 2015, methods"
BABAEIZADEH_CODE, CLEMENTE_CODE = "Babaeizadeh 2017, code", "Clemente 2017, code"
NAIR_2015 = "Nair 2015, 5.1"
TENSORFLOW = (
    "TensorFlow's RMSProp starts at 1. 0 here, as before the setting existed, so that stored configs keep "
    "their meaning; the preset as in the paper sets 1."
)

ATARI_SOURCES: Sources = {
    "frame_skip": Source(S8),
    "sticky_actions": ours("Not in the papers; Machado et al. 2018 use 0.25."),
    "full_action_set": Source(NAIR_2015),
    "noop_max": Source(CLEMENTE_2017),
    "fire_at_reset": ours("Not in the papers."),
    "max_frames": ours(
        "The papers state no limit of training episodes; this is the cap of evaluations from human starts "
        "(Nair 2015, 5.2)."
    ),
    "life_loss_terminal": Source(CLEMENTE_2017),
    "mode": ours("The cartridge's default."),
    "difficulty": ours("The cartridge's default."),
    "frame_maximum": Source(
        CLEMENTE_2017, "rgb", "A little faster in training; scores are always measured with rgb."
    ),
    "observation_size": Source(CLEMENTE_2017),
    "crop": ours("Not in the papers."),
}
"""Sources of the settings of Atari games."""

MUJOCO_SOURCES: Sources = {
    "max_episode_agent_steps": ours("gymnasium's limit.", "Mnih 2016, 5.3"),
    "normalise": ours(
        "Not in the paper: each dimension is normalised by constants of random play and clipped to ±10.",
        "Mnih 2016, 5.3",
    ),
}
"""Sources of the settings of MuJoCo with state observations."""


class Fixed(NamedTuple):
    """A constant that is not a hyperparameter."""

    name: str
    value: str
    where: str


FIXED = (
    Fixed("network nips", "16 filters 8×8 stride 4, 32 filters 4×4 stride 2, 256 units, ReLU", S8),
    Fixed(
        "network nature",
        "32 filters 8×8 stride 4, 64 filters 4×4 stride 2, 64 filters 3×3 stride 1, 512 units, ReLU",
        NAIR_2015,
    ),
    Fixed(
        "network large",
        "32 filters 8×8 stride 4 to 1, 32 filters 4×4 stride 2, 64 filters 4×4 stride 2, 256 units or, with "
        "stride 1, 1,024",
        "Babaeizadeh 2017, 5.1, note 2",
    ),
    Fixed("LSTM cells of A3C", "256", "Mnih 2016, 5.1"),
    Fixed("LSTM cells of A3C, continuous actions", "128", S9),
    Fixed("hidden units of A3C, continuous actions, state vectors", "200", S9),
    Fixed("probabilities of the three epsilons", "0.4, 0.3, 0.3", S8),
    Fixed(
        "decisions of an actor after which its epsilon is drawn again",
        "1,000",
        "ours; Mnih 2016, S8 states periodically",
    ),
    Fixed(
        "Gorila's running mean and variance of the absolute loss: decay, and losses before the first outlier",
        "0.99, 100",
        "ours; Nair 2015, 4.2 states neither",
    ),
    Fixed("submissions of a GA3C agent that may wait for trainers", "4", "ours; Babaeizadeh 2017, 4.1"),
    Fixed("epsilon of value methods in evaluation", "0.05", MNIH_2015),
    Fixed("stacked frames", "4", MNIH_2015),
    Fixed(
        "initial weights",
        "orthogonal, gain √2 in the body, 0.01 for the policy, 1 for values; biases 0",
        "ours; the papers state none, their authors' codes draw uniformly within ±1/√fan-in",
    ),
)
"""Constants of the engine that no setting changes."""
