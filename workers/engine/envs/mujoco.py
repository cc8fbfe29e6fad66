"""MuJoCo through gymnasium's v5 environments, from state or from pixels, with no screen.

From state, the observation is normalised by the constants of `workers.engine.envs.mujoco_scales` and clipped
to ±10. From pixels, the environment's camera renders 84×84 RGB, which is converted to luminance; the last
four frames are stacked, oldest first, along the last axis. An action outside its bounds is clipped.

Differences from the paper (Mnih et al. 2016, section 5.3):
- Rewards and physics are gymnasium's, as the paper gives neither.
- A state is normalised and clipped, which the paper does not mention; `normalise` disables both.
- The paper does not state how many frames its agents observed; four serve an agent without an LSTM too.
"""

import os
import sys
from ctypes import CDLL
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray


def _gl() -> str:
    """The off-screen renderer that this machine has."""
    for name, library in (("egl", "libEGL.so.1"), ("osmesa", "libOSMesa.so.8")):
        try:
            CDLL(library)
        except OSError:
            continue
        return name
    return "disable"


GL = os.environ.setdefault("MUJOCO_GL", _gl())  # MuJoCo reads it when first imported

import gymnasium  # noqa: E402
import mujoco  # noqa: E402

from backend.specs.environments import ENVIRONMENTS  # noqa: E402
from backend.specs.environments.mujoco import MujocoConfig, MujocoPixelsConfig, MujocoStateConfig  # noqa: E402
from workers.engine.envs.base import OnFrame  # noqa: E402
from workers.engine.envs.gymnasium_env import GymnasiumEnv  # noqa: E402
from workers.engine.envs.images import SIZE  # noqa: E402
from workers.engine.envs.mujoco_scales import scales  # noqa: E402

STACK = 4
FRAME_PIXELS = 240
"""Side of a rendered frame."""
LIMIT = 10.0

cv2.setNumThreads(1)
mujoco.set_mju_user_warning(
    lambda message: sys.stderr.write(f"MuJoCo: {message}\n")
)  # else it writes a file into the current folder


class MujocoRenderer:
    """Renders frames, `size` pixels square, without what costs most: shadows, reflections, anti-aliasing."""

    def __init__(self, env: Any, size: int) -> None:
        if GL == "disable":
            raise RuntimeError("rendering MuJoCo needs libEGL or libOSMesa: install the package libegl1")
        model = env.model
        model.vis.quality.offsamples = 0
        model.vis.quality.shadowsize = 0
        self._data = env.data
        self._renderer = mujoco.Renderer(model, size, size)
        for flag in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):
            self._renderer.scene.flags[flag] = False
        self._view = mujoco.MjvCamera()
        track = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, "track")
        if track >= 0:
            self._view.type = mujoco.mjtCamera.mjCAMERA_FIXED
            self._view.fixedcamid = track
        else:
            mujoco.mjv_defaultFreeCamera(model, self._view)
            for name, value in (env.mujoco_renderer.default_cam_config or {}).items():
                if isinstance(value, np.ndarray):
                    getattr(self._view, name)[:] = value
                else:
                    setattr(self._view, name, value)

    def render(self) -> NDArray[np.uint8]:
        """A frame of the current state, (size, size, 3) RGB."""
        self._renderer.update_scene(self._data, self._view)
        return np.asarray(self._renderer.render(), np.uint8)

    def close(self) -> None:
        """Free the rendering context."""
        self._renderer.close()


class MujocoEnv(GymnasiumEnv):
    """One environment from its state."""

    def __init__(self, environment: str, config: MujocoConfig) -> None:
        self._name = environment.removesuffix("-v5").removesuffix("-Pixels")
        limit = config.max_episode_agent_steps
        env = gymnasium.make(
            f"{self._name}-v5",
            disable_env_checker=True,
            **({} if limit is None else {"max_episode_steps": limit}),
        )
        super().__init__(env, ENVIRONMENTS[environment].action_names)
        self._frame_renderer: MujocoRenderer | None = None
        self._can_render = True
        normalise = isinstance(config, MujocoStateConfig) and config.normalise
        self._scales = scales(self._name) if normalise else None
        if normalise:
            self.observation_bounds = -LIMIT, LIMIT

    def close(self) -> None:
        """Free the simulation and its renderers."""
        if self._frame_renderer is not None:
            self._frame_renderer.close()
        super().close()

    def _observe(self, observation: Any, out: NDArray[Any]) -> None:
        np.copyto(out, observation, casting="same_kind")
        if self._scales is not None:
            mean, deviation = self._scales
            out -= mean
            out /= deviation
            np.clip(out, -LIMIT, LIMIT, out=out)

    def _render(self, on_frame: OnFrame) -> None:
        if self._frame_renderer is None and self._can_render:
            try:
                self._frame_renderer = MujocoRenderer(self._env.unwrapped, FRAME_PIXELS)
            except Exception as error:  # any driver problem: training from state needs no rendering
                self._can_render = False
                sys.stderr.write(f"{self._name} cannot be rendered: {error}\n")
        if self._frame_renderer is not None:
            on_frame(self._frame_renderer.render())


class MujocoPixelsEnv(MujocoEnv):
    """One environment through its camera."""

    def __init__(self, environment: str, config: MujocoPixelsConfig) -> None:
        super().__init__(environment, config)
        self.observation_shape = (SIZE, SIZE, STACK)
        self.observation_dtype = np.dtype(np.uint8)
        self._renderer = MujocoRenderer(self._env.unwrapped, SIZE)
        self._stack = np.zeros((SIZE, SIZE, STACK), np.uint8)

    def reset(self, seed: int, out: NDArray[Any]) -> None:
        """Start the episode of this seed; the first observation has three black frames and one real one."""
        self._stack[:] = 0
        super().reset(seed, out)

    def close(self) -> None:
        """Free the simulation and its renderers."""
        self._renderer.close()
        super().close()

    def _observe(self, observation: Any, out: NDArray[Any]) -> None:
        self._stack[..., :-1] = self._stack[..., 1:]
        self._stack[..., -1] = cv2.cvtColor(self._renderer.render(), cv2.COLOR_RGB2GRAY)
        np.copyto(out, self._stack)
