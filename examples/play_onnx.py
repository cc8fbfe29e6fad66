"""Play an episode with an agent that was exported as ONNX: `python play_onnx.py FOLDER CartPole-v1`.

Needs onnxruntime and gymnasium alone. The environment must return what the agent was trained on: the
README.md of the folder lists the preprocessing, such as that of Atari games.
"""

import sys
from pathlib import Path

import gymnasium
import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession(Path(sys.argv[1]) / "model.onnx")
memory = {value.name: np.zeros((1, value.shape[1]), np.float32) for value in session.get_inputs()[1:]}
names = [value.name for value in session.get_outputs()]
env = gymnasium.make(sys.argv[2])
observation, _ = env.reset(seed=0)
total, is_over = 0.0, False
while not is_over:
    batch = np.asarray(observation, np.float32 if np.ndim(observation) == 1 else np.uint8)[None]
    outputs = dict(zip(names, session.run(None, {"observation": batch, **memory}), strict=True))
    memory = {name: outputs[f"next_{name}"] for name in memory}  # of an agent with an LSTM
    best = outputs[names[0]][0]  # logits, Q, or the numbers of a continuous action
    is_discrete = isinstance(env.action_space, gymnasium.spaces.Discrete)
    action = int(best.argmax()) if is_discrete else best.clip(env.action_space.low, env.action_space.high)
    observation, reward, terminated, truncated, _ = env.step(action)
    total, is_over = total + float(reward), terminated or truncated
print(f"return: {total}")
