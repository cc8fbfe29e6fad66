"""Loops compiled by Numba, for arrays that are too large or too small for calls of NumPy or PyTorch.

Read first what they replace: `losses.actor_critic_loss`, the optimizers' equations and
`centre.centred_step_by_step`; the loops compute the same, faster.

An optimizer's update is one pass over memory; array calls would make five. An actor's policy is some dozens
of numbers; each array call would cost more than its work. Callers check the lengths. All arrays are
contiguous unless stated otherwise.

Roots and quotients are the processor's fast approximations with one step of refinement, accurate to a few
units in the last place of float32. Those of `centred_rmsprop` and `centre` are exact: the result of an
element does not depend on its position, so parts of a vector can be updated separately.

Processes that update the same vectors at the same time must not run in step: they would invalidate each
other's cache lines, and each would take ten times as long (measured). So they start at different elements,
and one of two runs backwards.

The machine code is cached in `NUMBA_CACHE_DIR` if set, next to this file, or in the user's cache. If none is
usable, each process compiles for itself.
"""

import pickle
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

_Vector = NDArray[np.float32]
_F = TypeVar("_F", bound=Callable[..., object])
_FAST = {"reassoc", "contract", "arcp", "nsz", "afn"}
"""LLVM's flags: sums in any order, approximate quotients and roots; NaN and Inf are kept."""
_EXACT = {"contract", "nsz"}
"""Exact roots and quotients: the update of an element does not depend on its position."""


def _compiled(*signatures: str, fastmath: set[str] = _FAST) -> Callable[[_F], _F]:
    """Compile a function for arguments of these types on import, or load it from the cache."""
    options: dict[str, Any] = {"error_model": "numpy", "fastmath": fastmath, "nogil": True}

    def compiled(function: _F) -> _F:
        try:
            kernel = njit(list(signatures), cache=True, **options)(function)
        except (RuntimeError, OSError, EOFError, pickle.UnpicklingError):
            # There is no usable cache, or a cached file is truncated.
            kernel = njit(list(signatures), **options)(function)
        return cast(_F, kernel)

    return compiled


@_compiled("void(f4[::1], f4[::1], f4[::1], f4, f4, f4, f4, b1)")
def rmsprop(
    theta: _Vector,
    g: _Vector,
    dtheta: _Vector,
    learning_rate: float,
    decay: float,
    rest: float,
    eps: float,
    backwards: bool,
) -> None:
    """`RMSProp.step`, from the first element or from the last; `rest` is 1 - decay."""
    last = len(theta) - 1
    for i in range(len(theta)):
        k = last - i if backwards else i
        d = dtheta[k]
        g[k] = decay * g[k] + rest * d * d
        theta[k] -= learning_rate * d / np.sqrt(g[k] + eps)


@_compiled("void(f4[::1], f4[::1], f4[::1], f4[::1], f4, f4, f4, b1)")
def adam(
    theta: _Vector,
    m: _Vector,
    v: _Vector,
    dtheta: _Vector,
    learning_rate: float,
    unbias_m: float,
    unbias_v: float,
    backwards: bool,
) -> None:
    """`Adam.step`, from either end; `unbias_m` is 1 / (1 - 0.9^n), `unbias_v` 1 / (1 - 0.999^n)."""
    last = len(theta) - 1
    for i in range(len(theta)):
        k = last - i if backwards else i
        d = dtheta[k]
        m[k] = np.float32(0.9) * m[k] + np.float32(0.1) * d
        v[k] = np.float32(0.999) * v[k] + np.float32(0.001) * d * d
        theta[k] -= learning_rate * m[k] * unbias_m / (np.sqrt(v[k] * unbias_v) + np.float32(1e-8))


@_compiled("void(f4[::1], f4[::1], f4[::1], f4[::1], f4, f4, f4, f4)", fastmath=_EXACT)
def centred_rmsprop(
    theta: _Vector,
    m: _Vector,
    g: _Vector,
    dtheta: _Vector,
    learning_rate: float,
    decay: float,
    rest: float,
    eps: float,
) -> None:
    """`CentredRMSProp.step`; `rest` is 1 - decay."""
    for k in range(len(theta)):
        d = dtheta[k]
        m[k] = decay * m[k] + rest * d
        g[k] = decay * g[k] + rest * d * d
        theta[k] -= learning_rate * d / np.sqrt(g[k] - m[k] * m[k] + eps)


@_compiled("void(u1[:, :, :, ::1], f4[:, :, ::1], f4[::1], f4[:, :, :, ::1])", fastmath={"nsz"})
def centre(
    pixels_BHWC: NDArray[np.uint8],
    mean_HWC: NDArray[np.float32],
    deviation: _Vector,
    out_BHWC: NDArray[np.float32],
) -> None:
    """`workers.engine.nn.centre.Centre`, rounded as PyTorch does step by step; `deviation` is (1,)."""
    B, factor = len(pixels_BHWC), np.float32(1) / deviation[0]
    mean_N = mean_HWC.reshape(mean_HWC.size)
    pixels_BN, out_BN = (
        pixels_BHWC.reshape((B, mean_HWC.size)),
        out_BHWC.reshape((B, mean_HWC.size)),
    )
    for b in range(B):
        for n in range(len(mean_N)):
            x = (np.float32(pixels_BN[b, n]) - mean_N[n]) * factor
            out_BN[b, n] = min(max(x, np.float32(-5)), np.float32(5))


@_compiled(
    "Tuple((f4[::1], f4[::1]))(f4[:, ::1], f4[::1], f4[::1])",
    "Tuple((f8[::1], f8[::1]))(f8[:, ::1], f8[::1], f8[::1])",
)
def act(
    weight_KF: NDArray[Any], bias_K: NDArray[Any], x_F: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Logits followed by V, (K,), and the softmax of the logits, (K - 1,), of features (F,) of one dtype."""
    out_K = bias_K.copy()
    for k in range(len(out_K)):
        total = weight_KF[k, 0] * x_F[0]
        for f in range(1, len(x_F)):
            total += weight_KF[k, f] * x_F[f]
        out_K[k] += total
    pi_A = out_K[:-1].copy()
    highest = pi_A.max()
    for a in range(len(pi_A)):
        pi_A[a] = np.exp(pi_A[a] - highest)
    total = pi_A.sum()
    for a in range(len(pi_A)):
        pi_A[a] /= total
    return out_K, pi_A


@_compiled("Tuple((f8[:, ::1], f8[::1], f8, f8, f8))(f8[:, :], f8[:], i8[:], f8[:], f8, f8)")
def actor_critic_descent(
    logits_TA: NDArray[np.float64],
    value_T: NDArray[np.float64],
    action_T: NDArray[np.int64],
    R_T: NDArray[np.float64],
    beta: float,
    value_coefficient: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64], float, float, float]:
    """`workers.engine.nn.losses.actor_critic_descent`, with the fields in its order; any strides."""
    T, A = logits_TA.shape
    d_logits_TA, d_value_T = np.empty((T, A)), np.empty(T)
    policy = value = entropies = 0.0
    log_pi_A = np.empty(A)
    for t in range(T):
        highest = logits_TA[t].max()
        total = 0.0
        for a in range(A):
            total += np.exp(logits_TA[t, a] - highest)
        entropy = 0.0
        for a in range(A):
            log_pi_A[a] = logits_TA[t, a] - highest - np.log(total)
            entropy -= np.exp(log_pi_A[a]) * log_pi_A[a]
        advantage = R_T[t] - value_T[t]
        for a in range(A):
            d_logits_TA[t, a] = np.exp(log_pi_A[a]) * (advantage + beta * (log_pi_A[a] + entropy))
        d_logits_TA[t, action_T[t]] -= advantage
        d_value_T[t] = -2 * value_coefficient * advantage
        policy -= log_pi_A[action_T[t]] * advantage / T
        value += advantage * advantage / T
        entropies += entropy / T
    return d_logits_TA, d_value_T, policy, value, entropies
