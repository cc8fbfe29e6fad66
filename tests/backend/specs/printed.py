"""Literals copied from the papers by hand; change one only with the paper in hand.

`code` as a place is the published code of a paper's authors, where the paper prints nothing; None is a
setting that a paper has without a number.
"""

from dataclasses import dataclass, field
from typing import Any

Printed = dict[str, tuple[Any, str, str | None]]
"""Setting -> what a paper prints: value, place, symbol."""


@dataclass(frozen=True)
class Expected:
    """What an algorithm must declare."""

    printed: Printed
    ours: dict[str, Any]
    """The defaults for which no paper has a number."""
    vector: dict[str, Any]
    """The defaults for vector observations, which no paper has: all ours."""
    reproducibility: str
    """What its processes allow; `test_contract.py` demands it of the engine."""
    protocol: str = "noop_starts"
    """The evaluation protocol of its paper."""
    different: dict[str, Any] = field(default_factory=dict)
    """The defaults that differ from the paper on purpose."""
    continuous: Printed = field(default_factory=dict)
    """What a paper prints for continuous actions, where it differs."""
    continuous_ours: dict[str, Any] = field(default_factory=dict)
    """The defaults for continuous actions for which no paper has a number."""


# Clemente, Castejón and Chandra 2017, section 5.1: "n_w = 8, n_e = 32, t_max = 5, N_max = 1.15 10^8,
# gamma = 0.99, alpha = 0.0224, epsilon = 0.1, beta = 0.01, and a discount factor of 0.99 for RMSProp.
# Additionally gradient clipping with a threshold of 40 was used." Table 1: "averaged over 30 runs".
PAAC_FRAMEWORK: Printed = {
    "n_w": (8, "Clemente 2017, 5.1", "n_w"),
    "n_e": (32, "Clemente 2017, 5.1", "nₑ"),
    "t_max": (5, "Clemente 2017, 5.1", "t_max"),
    "gamma": (0.99, "Clemente 2017, 5.1", "γ"),
    "learning_rate": (0.0224, "Clemente 2017, 5.1", "α"),
    "rmsprop_eps": (0.1, "Clemente 2017, 5.1", "ε"),
    "rmsprop_decay": (0.99, "Clemente 2017, 5.1", None),
    "max_grad_norm": (40, "Clemente 2017, 5.1", None),
    "network": ("nips", "Clemente 2017, 5.1", None),
    "scale_learning_rate": (False, "Clemente 2017, 5.1", None),
    "gradient_scale": (1, "Clemente 2017, algorithm 1", None),
    "evaluation_episodes": (30, "Clemente 2017, table 1", None),
    "reward_clip": (1, "Clemente 2017, code", None),
}
# Its authors' code, train.py and policy_v_network.py: the loss times 5, the value's times 0.25, entropy 0.02,
# clip_norm 3, the rate annealed over 80 million steps; TensorFlow's RMSProp starts at 1.
PAAC_CODE = {
    "gradient_scale": 5,
    "value_coefficient": 0.25,
    "beta": 0.02,
    "max_grad_norm": 3,
    "learning_rate_schedule": "linear",
    "rmsprop_initial_g": 1,
}
# Mnih et al. 2016, supplement, section 8: 16 actor-learners; updates every 5 actions; shared RMSProp with
# alpha 0.99; gamma 0.99; the network of Mnih et al. 2013; learning rates from LogUniform(1e-4, 1e-2),
# annealed linearly to 0. Rewards are clipped to ±1 as in Mnih et al. 2015.
ASYNCHRONOUS: Printed = {
    "n_actors": (16, "Mnih 2016, S8", None),
    "t_max": (5, "Mnih 2016, S8", "t_max"),
    "optimizer": ("shared_rmsprop", "Mnih 2016, S8", None),
    "rmsprop_decay": (0.99, "Mnih 2016, S8", "α"),
    "gamma": (0.99, "Mnih 2016, S8", "γ"),
    "network": ("nips", "Mnih 2016, S8", None),
    "learning_rate_schedule": ("linear", "Mnih 2016, S8", None),
    "learning_rate": (None, "Mnih 2016, S8", "η"),
    "rmsprop_eps": (None, "Mnih 2016, eq. 1", "ε"),
    "rmsprop_initial_g": (None, "Mnih 2016, eq. 1", "g₀"),
    "momentum": (None, "Mnih 2016, S7", "α"),
    "max_grad_norm": (None, "Mnih 2016, 5.1", None),
    "evaluation_episodes": (None, "Mnih 2016, 5.1", None),
    "reward_clip": (1, "Mnih 2015, methods", None),
}
# Section 8: target network every 40,000 frames; epsilons from 1 to 0.1, 0.01, 0.5 over 4 million frames.
VALUE: Printed = {
    "target_update_frames": (40_000, "Mnih 2016, S8", "I_target"),
    "exploration_eps": (0.1, "Mnih 2016, S8", "ε"),
    "exploration_eps_low": (0.01, "Mnih 2016, S8", "ε"),
    "exploration_eps_high": (0.5, "Mnih 2016, S8", "ε"),
    "exploration_anneal_frames": (4_000_000, "Mnih 2016, S8", None),
}
# Section 8: beta 0.01. Algorithm S2: the value's gradient has no weight.
A3C: Printed = {
    "beta": (0.01, "Mnih 2016, S8", "β"),
    "value_coefficient": (1, "Mnih 2016, algorithm S2", None),
    "recurrent": (False, "Mnih 2016, 5.1", None),
    "first_layer_stride": (4, "Babaeizadeh 2017, 5.1, note 2", None),
}
# Babaeizadeh et al. 2017: network of two convolutions, t_max = 5 (3.2); an agent is a process (4.1);
# N_P = N_T = 2, a change every minute (4.3); no gradient clipping (4.4); one agent's batch (5.3); rates
# 0.0003 and 0.0001 (figure 6); 30 games (table 3). Its authors' Config.py: AGENTS 32, DISCOUNT 0.99,
# REWARD_MIN/MAX ±1, BETA 0.01, LEARNING_RATE_START and _END 0.0003, RMSPROP_DECAY 0.99,
# RMSPROP_EPSILON 0.1, LOG_EPSILON 1e-6.
GA3C: Printed = {
    "network": ("nips", "Babaeizadeh 2017, 3.2", None),
    "first_layer_stride": (4, "Babaeizadeh 2017, 5.1, note 2", None),
    "t_max": (5, "Babaeizadeh 2017, 3.2", "t_max"),
    "n_predictors": (2, "Babaeizadeh 2017, 4.3", "N_P"),
    "n_trainers": (2, "Babaeizadeh 2017, 4.3", "N_T"),
    "adjustment_interval_s": (60, "Babaeizadeh 2017, 4.3", None),
    "max_grad_norm": (0, "Babaeizadeh 2017, 4.4", None),
    "min_training_batch": (1, "Babaeizadeh 2017, 5.3", None),
    "learning_rate": (0.0003, "Babaeizadeh 2017, fig. 6", "η"),
    "value_coefficient": (1, "Babaeizadeh 2017, eq. 2", None),
    "evaluation_episodes": (30, "Babaeizadeh 2017, table 3", None),
    "n_actors": (32, "Babaeizadeh 2017, code", "N_A"),
    "agents_per_process": (1, "Babaeizadeh 2017, 4.1", None),
    "gamma": (0.99, "Babaeizadeh 2017, code", "γ"),
    "reward_clip": (1, "Babaeizadeh 2017, code", None),
    "beta": (0.01, "Babaeizadeh 2017, code", "β"),
    "learning_rate_schedule": ("constant", "Babaeizadeh 2017, code", None),
    "rmsprop_decay": (0.99, "Babaeizadeh 2017, code", "α"),
    "rmsprop_eps": (0.1, "Babaeizadeh 2017, code", "ε"),
    "rmsprop_initial_g": (1, "Babaeizadeh 2017, code", "g₀"),
    "log_eps": (1e-6, "Babaeizadeh 2017, code", "ε"),
}
# Mnih et al. 2015, methods and extended data table 1: batch 32; replay 1 million; learning starts at 50,000;
# an update every 4 actions; target every 10,000 updates; gamma 0.99; learning rate 0.00025; both momenta
# 0.95; minimum squared gradient 0.01; epsilon 1 to 0.1 over 1 million. Evaluation: 30 episodes of 5 minutes.
REPLAYED: Printed = {
    "network": ("nature", "Mnih 2015, methods", None),
    "optimizer": ("centred_rmsprop", "Mnih 2015, methods", None),
    "batch_size": (32, "Mnih 2015, methods", None),
    "replay_capacity": (1_000_000, "Mnih 2015, methods", "D"),
    "learning_starts_agent_steps": (50_000, "Mnih 2015, methods", None),
    "agent_steps_per_update": (4, "Mnih 2015, methods", None),
    "target_update_updates": (10_000, "Mnih 2015, methods", "N"),
    "gamma": (0.99, "Mnih 2015, methods", "γ"),
    "learning_rate": (0.00025, "Mnih 2015, methods", "η"),
    "rmsprop_decay": (0.95, "Mnih 2015, methods", None),
    "rmsprop_eps": (0.01, "Mnih 2015, methods", "ε"),
    "reward_clip": (1, "Mnih 2015, methods", None),
    "exploration_eps": (0.1, "Mnih 2015, methods", "ε"),
    "evaluation_episodes": (30, "Mnih 2015, methods", None),
}
# Nair et al. 2015, section 5.1: N_param = 31, N_learn = N_act = 100, bundled mode, D = 1 million frames (4:
# "If a single machine has sufficient memory to store M experience tuples, ... M N_act"),
# epsilon from 1 to 0.1 over one million global updates, theta_minus every 60K updates; 5.2: 30 episodes,
# 18000 frames; 4.2: AdaGrad. Algorithm 1: theta from theta+ before, and one minibatch after, every action.
GORILA: Printed = {
    "network": ("nature", "Nair 2015, 5.1", None),
    "n_shards": (31, "Nair 2015, 5.1", "N_param"),
    "n_learners": (100, "Nair 2015, 5.1", "N_learn"),
    "n_actors": (100, "Nair 2015, 5.1", "N_act"),
    "replay": ("bundled", "Nair 2015, 5.1", None),
    "replay_capacity": (100_000_000, "Nair 2015, 5.1", "D"),
    "exploration_eps": (0.1, "Nair 2015, 5.1", "ε"),
    "exploration_anneal_updates": (1_000_000, "Nair 2015, 5.1", None),
    "target_update_updates": (60_000, "Nair 2015, 5.1", "N"),
    "evaluation_episodes": (30, "Nair 2015, 5.2", None),
    "optimizer": ("adagrad", "Nair 2015, 4.2", None),
    "learning_rate": (None, "Nair 2015, 4.2", "η"),
    "max_gradient_staleness": (None, "Nair 2015, 4.2", None),
    "outlier_deviations": (None, "Nair 2015, 4.2", None),
    "n_replay_shards": (None, "Nair 2015, 4", None),
    "pull_interval": (1, "Nair 2015, algorithm 1", None),
    "agent_steps_per_update": (1, "Nair 2015, algorithm 1", None),
}
# Schulman et al. 2017, table 5: horizon 128, Adam stepsize 2.5e-4 x alpha, 3 epochs, minibatch 32 x 8, gamma
# 0.99, lambda 0.95, 8 actors, clip 0.1 x alpha, VF coefficient 1, entropy 0.01; alpha from 1 to 0.
# Its authors' code, baselines ppo2: gradients clipped to 0.5, advantages normalised, the sign of rewards.
PPO: Printed = {
    "network": ("nips", "Schulman 2017, 6.4", None),
    "learning_rate": (0.00025, "Schulman 2017, table 5", "η"),
    "learning_rate_schedule": ("linear", "Schulman 2017, table 5", None),
    "gamma": (0.99, "Schulman 2017, table 5", "γ"),
    "n_e": (8, "Schulman 2017, table 5", "nₑ"),
    "t_max": (128, "Schulman 2017, table 5", "t_max"),
    "clip": (0.1, "Schulman 2017, table 5", "ε"),
    "gae_lambda": (0.95, "Schulman 2017, table 5", "λ"),
    "n_epochs": (3, "Schulman 2017, table 5", "K"),
    "n_minibatches": (4, "Schulman 2017, table 5", None),
    "value_coefficient": (1, "Schulman 2017, table 5", "c₁"),
    "beta": (0.01, "Schulman 2017, table 5", "β"),
    "max_grad_norm": (0.5, "Schulman 2017, code", None),
    "reward_clip": (1, "Schulman 2017, code", None),
    "normalise_advantages": (True, "Schulman 2017, code", None),
}
# Table 3: horizon 2048, Adam stepsize 3e-4, 10 epochs, minibatch 64, gamma 0.99, lambda 0.95. Table 1:
# clipping with epsilon 0.2 scores best. Section 6.1: no entropy bonus. Code: one environment, advantages
# normalised.
PPO_CONTINUOUS: Printed = {
    "learning_rate": (0.0003, "Schulman 2017, table 3", "η"),
    "t_max": (2048, "Schulman 2017, table 3", "t_max"),
    "n_epochs": (10, "Schulman 2017, table 3", "K"),
    "n_minibatches": (32, "Schulman 2017, table 3", None),
    "clip": (0.2, "Schulman 2017, table 1", "ε"),
    "n_e": (1, "Schulman 2017, code", "nₑ"),
    "normalise_advantages": (True, "Schulman 2017, code", None),
    "beta": (0, "Schulman 2017, 6.1", "β"),
}
_OPERATION = {
    "evaluation_protocol": "auto",
    "evaluation_interval_agent_steps": 1_000_000,
    "checkpoint_interval_s": 40,
    "centre": False,
}
_PAAC_OURS = _OPERATION | {
    "precision": "fp32",
    "learning_rate_schedule": "constant",
    "rmsprop_initial_g": 0,
}
_ASYNCHRONOUS_OURS = _OPERATION | {
    "learning_rate": 0.0007,
    "rmsprop_eps": 0.1,
    "rmsprop_initial_g": 0,
    "momentum": 0.99,
    "max_grad_norm": 40,
    "evaluation_episodes": 30,
}
# Mnih et al. 2016, supplement, section 9: LSTM after the encoder, no bootstrapping (each episode one update),
# cost 1e-4 on the differential entropy; the rest as in section 8.
A3C_CONTINUOUS: Printed = {
    "recurrent": (True, "Mnih 2016, S9", None),
    "t_max": (0, "Mnih 2016, S9", "t_max"),
    "beta": (0.0001, "Mnih 2016, S9", "β"),
    "n_actors": (16, "Mnih 2016, S8", None),
    "optimizer": ("shared_rmsprop", "Mnih 2016, S8", None),
    "learning_rate_schedule": ("linear", "Mnih 2016, S8", None),
    "learning_rate": (None, "Mnih 2016, S8", "η"),
    "rmsprop_eps": (None, "Mnih 2016, eq. 1", "ε"),
    "max_grad_norm": (None, "Mnih 2016, 5.1", None),
    "reward_clip": (None, "Mnih 2016, S9", None),
}

# Clemente et al. 2017, section 5.1: repeated 4 times, maximum of the two latest frames, then 84×84 and one
# channel; 1 to 30 no-ops; restarted at the final state. Nair et al. 2015, 5.1: an output for each valid
# action.
ATARI: Printed = {
    "frame_skip": (4, "Mnih 2016, S8", None),
    "noop_max": (30, "Clemente 2017, 5.1", None),
    "full_action_set": (False, "Nair 2015, 5.1", None),
    "life_loss_terminal": (False, "Clemente 2017, 5.1", None),
    "frame_maximum": ("rgb", "Clemente 2017, 5.1", None),
    "observation_size": ("84x84", "Clemente 2017, 5.1", None),
}
ATARI_OURS = {
    "sticky_actions": 0,
    "fire_at_reset": False,
    "max_frames": 108_000,
    "mode": None,
    "difficulty": None,
    "crop": False,
}
ATARI_DIFFERENT = {"frame_maximum": "luminance"}

_ASYNC_Q_VECTOR: dict[str, Any] = {
    "network": "mlp",
    "n_actors": 2,
    "learning_rate": 0.001,
    "rmsprop_eps": 0.001,
    "learning_rate_schedule": "constant",
    "max_grad_norm": 10,
    "reward_clip": 0,
    "target_update_frames": 1_000,
    "exploration_anneal_frames": 20_000,
    "evaluation_interval_agent_steps": 100_000,
}

_ASYNC_Q = Expected(ASYNCHRONOUS | VALUE, _ASYNCHRONOUS_OURS, _ASYNC_Q_VECTOR, "none")

EXPECTED: dict[str, Expected] = {
    "paac": Expected(
        printed=PAAC_FRAMEWORK
        | {
            "beta": (0.01, "Clemente 2017, 5.1", "β"),
            "value_coefficient": (1, "Clemente 2017, algorithm 1", None),
        },
        ours=_PAAC_OURS | {"standardise": False},
        vector={
            "network": "mlp",
            "learning_rate": 0.003,
            "rmsprop_eps": 1e-5,
            "value_coefficient": 0.1,
            "max_grad_norm": 0.5,
            "reward_clip": 0,
            "n_e": 16,
            "n_w": 1,
            "evaluation_interval_agent_steps": 100_000,
        },
        reproducibility="resumes_agree",
    ),
    "paac_q": Expected(
        printed=PAAC_FRAMEWORK | VALUE,
        ours=_OPERATION | _PAAC_OURS,
        vector={
            "network": "mlp",
            "learning_rate": 0.005,
            "rmsprop_eps": 1e-5,
            "reward_clip": 0,
            "n_e": 16,
            "n_w": 1,
            "target_update_frames": 500,
            "exploration_anneal_frames": 20_000,
            "evaluation_interval_agent_steps": 100_000,
        },
        reproducibility="resumes_agree",
    ),
    "ga3c": Expected(
        printed=GA3C | {"max_adjusted_actors": (None, "Babaeizadeh 2017, 4.3", None)},
        ours=_OPERATION | {"max_adjusted_actors": 32},
        vector={
            "network": "mlp",
            "learning_rate": 0.001,
            "rmsprop_eps": 1e-5,
            "value_coefficient": 0.1,
            "reward_clip": 0,
            "n_actors": 8,
            "n_predictors": 1,
            "n_trainers": 1,
            "min_training_batch": 40,
            "adjustment_interval_s": 0,
            "evaluation_interval_agent_steps": 100_000,
        },
        reproducibility="none",
        different={"rmsprop_initial_g": 0},
    ),
    "a3c": Expected(
        printed=ASYNCHRONOUS | A3C,
        ours=_ASYNCHRONOUS_OURS | {"standardise": False},
        vector={
            "network": "mlp",
            "n_actors": 2,
            "learning_rate": 0.003,
            "rmsprop_eps": 0.001,
            "learning_rate_schedule": "constant",
            "max_grad_norm": 5,
            "reward_clip": 0,
            "evaluation_interval_agent_steps": 100_000,
        },
        reproducibility="none",
        different={"value_coefficient": 0.5},
        continuous=A3C_CONTINUOUS,
        continuous_ours={"learning_rate": 0.0007, "rmsprop_eps": 0.1, "max_grad_norm": 40, "reward_clip": 0},
    ),
    "n_step_q": _ASYNC_Q,
    "one_step_q": _ASYNC_Q,
    "one_step_sarsa": _ASYNC_Q,
    "dqn": Expected(
        printed=REPLAYED | {"exploration_anneal_agent_steps": (1_000_000, "Mnih 2015, methods", None)},
        ours=_OPERATION | {"precision": "fp32", "learner_threads": 2},
        vector={
            "network": "mlp",
            "learning_rate": 0.001,
            "reward_clip": 0,
            "target_update_updates": 250,
            "replay_capacity": 50_000,
            "learning_starts_agent_steps": 1_000,
            "exploration_anneal_agent_steps": 10_000,
            "exploration_eps": 0.05,
            "learner_threads": 1,
            "evaluation_interval_agent_steps": 100_000,
        },
        reproducibility="bitwise",
        protocol="noop_starts_5min",
    ),
    "random": Expected(
        printed={"evaluation_episodes": (30, "Mnih 2015, methods", None)},
        ours={name: value for name, value in _OPERATION.items() if name != "centre"},
        vector={},
        reproducibility="bitwise",
        protocol="noop_starts_5min",
    ),
    "gorila_dqn": Expected(
        printed=REPLAYED | GORILA,
        ours=_OPERATION
        | {
            "precision": "fp32",
            "learning_rate": 0.001,
            "max_gradient_staleness": 500,
            "outlier_deviations": 4,
            "n_replay_shards": 8,
            "parts_per_process": 1,
            "snapshot_interval_s": 5,
        },
        vector={
            "network": "mlp",
            "learning_rate": 0.01,
            "reward_clip": 0,
            "n_actors": 2,
            "n_learners": 2,
            "n_shards": 2,
            "n_replay_shards": 2,
            "parts_per_process": 2,
            "pull_interval": 4,
            "target_update_updates": 250,
            "replay_capacity": 50_000,
            "learning_starts_agent_steps": 1_000,
            "exploration_anneal_updates": 2_500,
            "exploration_eps": 0.05,
            "evaluation_interval_agent_steps": 100_000,
        },
        reproducibility="none",
        protocol="noop_starts_5min",
        different={"agent_steps_per_update": 4, "replay_capacity": 1_000_000},
    ),
    "ppo": Expected(
        printed=PPO,
        ours=_OPERATION | {"precision": "fp32", "evaluation_episodes": 30, "n_w": 8, "standardise": False},
        vector={
            "network": "mlp",
            "learning_rate": 0.001,
            "learning_rate_schedule": "constant",
            "reward_clip": 0,
            "n_w": 1,
            "t_max": 32,
            "clip": 0.2,
            "n_epochs": 4,
            "normalise_advantages": False,
            "value_coefficient": 0.05,
            "beta": 0,
            "evaluation_interval_agent_steps": 100_000,
        },
        reproducibility="resumes_agree",
        continuous=PPO_CONTINUOUS,
        continuous_ours={
            "n_w": 1,
            "learning_rate_schedule": "constant",
            "reward_clip": 0,
            "value_coefficient": 1,
        },
    ),
}
"""Every algorithm of the catalogue."""
