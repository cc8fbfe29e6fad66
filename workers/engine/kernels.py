"""Loops compiled by Numba, where arrays are too large or too small for calls of NumPy's or PyTorch's.

An optimizer's update is one pass over memory, where array calls take five; an actor's policy is some dozens
of numbers, where each array call costs more than its work. Lengths are not looked at here: callers do. All
arrays are contiguous where nothing else is said.

Roots and quotients are the processor's quick ones with a step of refinement, right to within a few units in
the last place of float32. Those of `centred_rmsprop` are exact, so that Gorila's shards make of parts of a
vector what one shard makes of all of it.

Processes that go over the same vectors at the same time must not fall into step: they would take every cache
line from one another, and each would need ten times as long (measured). So they begin at different places,
and one of two goes backwards.

The machine code is kept in `NUMBA_CACHE_DIR` where that is set, beside this file, or in the user's cache;
where none of them can be used, each process compiles for itself.
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
"""As LLVM names them: sums in any order, quick quotients and roots. What is not a number stays so."""
_EXACT = {"contract", "nsz"}
"""Roots and quotients right to the last place: an element's update does not depend on where it stands."""


def _compiled(*signatures: str, fastmath: set[str] = _FAST) -> Callable[[_F], _F]:
    """Compile a function for arguments of these types, here and now, unless that is kept from before."""
    options: dict[str, Any] = {"error_model": "numpy", "fastmath": fastmath, "nogil": True}

    def compiled(function: _F) -> _F:
        try:
            made = njit(list(signatures), cache=True, **options)(function)
        except (RuntimeError, OSError, EOFError, pickle.UnpicklingError):
            # There is no place to keep it, or what is kept there was cut short.
            made = njit(list(signatures), **options)(function)
        return cast(_F, made)

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
    """`RMSProp.step`, from the last element on or from the first; `rest` is 1 - decay."""
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
    """`SharedAdam.step`, likewise; `unbias_m` is 1 / (1 - 0.9^n), `unbias_v` 1 / (1 - 0.999^n)."""
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


@_compiled(
    "Tuple((f4[::1], f4[::1]))(f4[:, ::1], f4[::1], f4[::1])",
    "Tuple((f8[::1], f8[::1]))(f8[:, ::1], f8[::1], f8[::1])",
)
def act(
    weight_KF: NDArray[Any], bias_K: NDArray[Any], x_F: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Logits and V behind them (K,), and softmax of the logits (K - 1,), of features (F,); of one dtype."""
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
    """`workers.engine.losses.actor_critic_descent`, its parts in their order; strides do not matter."""
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
