"""Where every default comes from: the papers' constants, next to the specs that use them.

`python -m backend.specs.constants_page > docs/constants.md` writes the table.

Papers, as the sources name them:
- Mnih 2016: Asynchronous Methods for Deep Reinforcement Learning; sections of its supplement as S7, S8, S9.
- Clemente 2017: Efficient Parallel Methods for Deep Reinforcement Learning (PAAC).
- Babaeizadeh 2017: Reinforcement Learning through Asynchronous Advantage Actor-Critic on a GPU (GA3C).
- Nair 2015: Massively Parallel Methods for Deep Reinforcement Learning (Gorila).
- Mnih 2015: Human-level control through deep reinforcement learning (DQN).
- code: the published code of the paper's authors, where the paper prints nothing.
"""

from typing import Any, NamedTuple


class Source(NamedTuple):
    """What a paper has for a setting."""

    where: str
    """Paper and section; empty if no paper has it."""
    value: Any = None
    """The paper's value, in this project's units and names; None if it prints none."""
    note: str = ""
    """Why the default differs, or why there is one although no paper has it."""


def ours(note: str, where: str = "") -> Source:
    """A setting whose value no paper prints; `where` if a paper has the setting without a value."""
    return Source(where, None, note)


_S7, _S8, _S9 = (f"Mnih 2016, {section}" for section in ("S7", "S8", "S9"))
_PAAC, _MNIH_2015 = "Clemente 2017, 5.1", "Mnih 2015, methods"
_GA3C_CODE, _PAAC_CODE = "Babaeizadeh 2017, code", "Clemente 2017, code"
_GORILA = "Nair 2015, 5.1"
_TENSORFLOW = (
    "TensorFlow's RMSProp starts at 1. 0 here, as before the setting existed, so that stored configs keep "
    "their meaning; the preset As in the paper sets 1."
)

_OPERATION = {
    "evaluation_interval_agent_steps": ours("The papers do not state how often they evaluate."),
    "evaluation_protocol": ours("auto: the paper's; see the page on evaluation protocols."),
    "checkpoint_interval_s": ours("Operation only: does not affect learning."),
}
_VALUE = {
    "target_update_frames": Source(_S8, 40_000),
    "exploration_eps": Source(_S8, 0.1),
    "exploration_eps_low": Source(_S8, 0.01),
    "exploration_eps_high": Source(_S8, 0.5),
    "exploration_anneal_frames": Source(_S8, 4_000_000),
}
_ASYNCHRONOUS = _OPERATION | {
    "evaluation_episodes": ours(
        "As in the other papers; this paper's tables use 100 human starts instead.", "Mnih 2016, 5.1"
    ),
    "network": Source(_S8, "nips", "Section 5.1 names the network of Mnih 2015 for the 57-game agent."),
    "n_actors": Source(_S8, 16),
    "optimizer": Source(_S8, "shared_rmsprop"),
    "learning_rate": ours("The paper samples LogUniform(1e-4, 1e-2); an author mentions 0.0007.", _S8),
    "learning_rate_schedule": Source(_S8, "linear"),
    "gamma": Source(_S8, 0.99),
    "rmsprop_decay": Source(_S8, 0.99),
    "rmsprop_eps": ours(
        "Not stated; 0.1 is the value of Clemente 2017 and of Babaeizadeh's code.", "Mnih 2016, eq. 1"
    ),
    "rmsprop_initial_g": ours("Not stated, and no code is published.", "Mnih 2016, eq. 1"),
    "momentum": ours("Not stated; RMSProp's decay. Used by momentum_sgd only.", _S7),
    "max_grad_norm": ours(
        "Tuned on six games, but not stated; 40 is the value of Clemente 2017.", "Mnih 2016, 5.1"
    ),
    "reward_clip": Source(_MNIH_2015, 1.0),
    "t_max": Source(_S8, 5),
}
_SYNCHRONOUS = _OPERATION | {
    "evaluation_episodes": Source("Clemente 2017, table 1", 30),
    "network": Source(_PAAC, "nips"),
    "precision": ours("fp32 is TensorFlow's default."),
    "learning_rate": Source(_PAAC, 0.0224),
    "scale_learning_rate": Source(
        _PAAC, False, "Section 5.2 compares numbers of environments with 0.0007 nₑ, which is 0.0224 for 32."
    ),
    "learning_rate_schedule": Source(
        _PAAC_CODE, "linear", "The paper states one learning rate and no schedule."
    ),
    "gamma": Source(_PAAC, 0.99),
    "rmsprop_decay": Source(_PAAC, 0.99),
    "rmsprop_eps": Source(_PAAC, 0.1),
    "rmsprop_initial_g": Source(_PAAC_CODE, 1.0, _TENSORFLOW),
    "gradient_scale": Source("Clemente 2017, algorithm 1", 1.0),
    "max_grad_norm": Source(_PAAC, 40.0),
    "reward_clip": Source(_PAAC_CODE, 1.0),
    "n_e": Source(_PAAC, 32),
    "n_w": Source(_PAAC, 8),
    "t_max": Source(_PAAC, 5),
}
_REPLAYED = _OPERATION | {
    "evaluation_episodes": Source(_MNIH_2015, 30),
    "network": Source(_MNIH_2015, "nature"),
    "optimizer": Source(_MNIH_2015, "centred_rmsprop"),
    "learning_rate": Source(_MNIH_2015, 0.00025),
    "rmsprop_decay": Source(_MNIH_2015, 0.95),
    "rmsprop_eps": Source(_MNIH_2015, 0.01),
    "gamma": Source(_MNIH_2015, 0.99),
    "reward_clip": Source(_MNIH_2015, 1.0),
    "batch_size": Source(_MNIH_2015, 32),
    "agent_steps_per_update": Source(_MNIH_2015, 4),
    "precision": ours("Not stated in the papers; fp32 is usual."),
    "target_update_updates": Source(_MNIH_2015, 10_000),
    "replay_capacity": Source(_MNIH_2015, 1_000_000),
    "learning_starts_agent_steps": Source(_MNIH_2015, 50_000),
    "exploration_eps": Source(_MNIH_2015, 0.1),
}
_ASYNC_Q = _ASYNCHRONOUS | _VALUE

ALGORITHM_SOURCES: dict[str, dict[str, Source]] = {
    "paac": _SYNCHRONOUS
    | {
        "standardise": ours("Not in the paper."),
        "value_coefficient": Source("Clemente 2017, algorithm 1", 1.0),
        "beta": Source(_PAAC, 0.01),
    },
    "paac_q": _SYNCHRONOUS | _VALUE,
    "ga3c": _OPERATION
    | {
        "evaluation_episodes": Source("Babaeizadeh 2017, table 3", 30),
        "network": Source("Babaeizadeh 2017, 3.2", "nips"),
        "first_layer_stride": Source("Babaeizadeh 2017, 5.1, note 2", 4),
        "learning_rate": Source("Babaeizadeh 2017, fig. 6", 0.0003),
        "learning_rate_schedule": Source(_GA3C_CODE, "constant"),
        "gamma": Source(_GA3C_CODE, 0.99),
        "rmsprop_decay": Source(_GA3C_CODE, 0.99),
        "rmsprop_eps": Source(_GA3C_CODE, 0.1),
        "rmsprop_initial_g": Source(_GA3C_CODE, 1.0, _TENSORFLOW),
        "value_coefficient": Source("Babaeizadeh 2017, eq. 2", 1.0),
        "max_grad_norm": Source("Babaeizadeh 2017, 4.4", 0.0),
        "reward_clip": Source(_GA3C_CODE, 1.0),
        "log_eps": Source(_GA3C_CODE, 1e-6),
        "beta": Source(_GA3C_CODE, 0.01),
        "n_actors": Source(_GA3C_CODE, 32),
        "n_predictors": Source("Babaeizadeh 2017, 4.3", 2),
        "n_trainers": Source("Babaeizadeh 2017, 4.3", 2),
        "min_training_batch": Source("Babaeizadeh 2017, 5.3", 1),
        "t_max": Source("Babaeizadeh 2017, 3.2", 5),
        "adjustment_interval_s": Source("Babaeizadeh 2017, 4.3", 60.0),
    },
    "a3c": _ASYNCHRONOUS
    | {
        "recurrent": Source("Mnih 2016, 5.1", False, "The paper trains both agents, with and without."),
        "standardise": ours("Not in the paper."),
        "value_coefficient": Source(
            "Mnih 2016, algorithm S2", 1.0, "An author mentions 0.5; the algorithm has no weight."
        ),
        "beta": Source(_S8, 0.01),
    },
    "n_step_q": _ASYNC_Q,
    "one_step_q": _ASYNC_Q,
    "one_step_sarsa": _ASYNC_Q,
    "dqn": _REPLAYED
    | {
        "exploration_anneal_agent_steps": Source(_MNIH_2015, 1_000_000),
        "learner_threads": ours("Operation only: affects rounding."),
    },
    "gorila_dqn": _REPLAYED
    | {
        "evaluation_episodes": Source("Nair 2015, 5.2", 30),
        "network": Source(_GORILA, "nature"),
        "optimizer": Source("Nair 2015, 4.2", "adagrad"),
        "learning_rate": ours("Not stated.", "Nair 2015, 4.2"),
        "rmsprop_eps": Source(_MNIH_2015, 0.01, "Nair 2015 states none for AdaGrad; this is DQN's."),
        "agent_steps_per_update": Source(
            "Nair 2015, algorithm 1",
            1,
            "As DQN, whose set-up section 5.1 follows; algorithm 1 has every step.",
        ),
        "target_update_updates": Source(_GORILA, 60_000),
        "replay_capacity": Source(_GORILA, 1_000_000),
        "exploration_eps": Source(_GORILA, 0.1),
        "exploration_anneal_updates": Source(_GORILA, 1_000_000),
        "replay": Source(_GORILA, "bundled"),
        "n_actors": Source(_GORILA, 100),
        "n_learners": Source(_GORILA, 100),
        "n_shards": Source(_GORILA, 31),
        "n_replay_shards": ours("Not stated; used by the global replay only.", "Nair 2015, 4"),
        "parts_per_process": ours("The paper uses a machine for each part."),
        "pull_interval": Source("Nair 2015, algorithm 1", 1),
        "max_gradient_staleness": ours("Not stated.", "Nair 2015, 4.2"),
        "outlier_deviations": ours("The paper states several.", "Nair 2015, 4.2"),
        "snapshot_interval_s": ours("Operation only: what a failed shard loses."),
    },
}
"""Algorithm id -> setting -> its source. Every setting of every algorithm has one."""

CONTINUOUS_SOURCES: dict[str, Source] = {
    "recurrent": Source(_S9, True),
    "n_actors": Source(_S8, 16),
    "optimizer": Source(_S8, "shared_rmsprop"),
    "learning_rate": ours("As for discrete actions; the paper samples it.", _S8),
    "learning_rate_schedule": Source(_S8, "linear"),
    "rmsprop_eps": ours("As for discrete actions; not stated.", "Mnih 2016, eq. 1"),
    "max_grad_norm": ours("As for discrete actions; not stated.", "Mnih 2016, 5.1"),
    "reward_clip": ours("Off: the clip is for Atari's scores.", _S9),
    "beta": Source(_S9, 0.0001),
    "t_max": Source(_S9, 0),
}
"""A3C's defaults for continuous actions that are set apart; 0 as t_max is an update per episode."""

ATARI_SOURCES: dict[str, Source] = {
    "frame_skip": Source(_S8, 4),
    "sticky_actions": ours("Not in the papers; Machado et al. 2018 use 0.25."),
    "full_action_set": Source(_GORILA, False),
    "noop_max": Source(_PAAC, 30),
    "fire_at_reset": ours("Not in the papers."),
    "max_frames": Source("Nair 2015, 5.2", 108_000),
    "life_loss_terminal": Source(_PAAC, False),
    "mode": ours("The cartridge's default."),
    "difficulty": ours("The cartridge's default."),
    "frame_maximum": Source(
        _PAAC, "rgb", "A little faster in training; scores are always measured with rgb."
    ),
    "observation_size": Source(_PAAC, "84x84"),
    "crop": ours("Not in the papers."),
}
"""Sources of the settings of Atari games."""


class Fixed(NamedTuple):
    """A constant that is not a hyperparameter."""

    name: str
    value: str
    where: str


FIXED = (
    Fixed("network nips", "16 filters 8×8 stride 4, 32 filters 4×4 stride 2, 256 units, ReLU", _S8),
    Fixed(
        "network nature",
        "32 filters 8×8 stride 4, 64 filters 4×4 stride 2, 64 filters 3×3 stride 1, 512 units, ReLU",
        _GORILA,
    ),
    Fixed(
        "network large",
        "32 filters 8×8 stride 4 to 1, 32 filters 4×4 stride 2, 64 filters 4×4 stride 2, 256 units or, with "
        "stride 1, 1,024",
        "Babaeizadeh 2017, 5.1, note 2",
    ),
    Fixed("LSTM cells of A3C", "256", "Mnih 2016, 5.1"),
    Fixed("LSTM cells of A3C, continuous actions", "128", _S9),
    Fixed("hidden units of A3C, continuous actions, state vectors", "200", _S9),
    Fixed("probabilities of the three epsilons", "0.4, 0.3, 0.3", _S8),
    Fixed("epsilon of value methods in evaluation", "0.05", _MNIH_2015),
    Fixed("stacked frames", "4", _MNIH_2015),
)
"""Constants of the engine that no setting changes."""
