"""Returns against slow transcriptions of the papers."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from workers.engine.nn.returns import generalised_advantages, n_step_returns

FLOATS = st.floats(-10, 10, width=32)


def oracle(
    r: NDArray[np.float64], terminal: NDArray[np.bool_], bootstrap: NDArray[np.float64], gamma: float
) -> NDArray[np.float64]:
    """The definition, summed term by term: rewards up to the first terminal step, else on to V(s_T)."""
    T, B = r.shape
    R = np.zeros((T, B))
    for e in range(B):
        for t in range(T):
            discount = 1.0
            for k in range(t, T):
                R[t, e] += discount * r[k, e]
                discount *= gamma
                if terminal[k, e]:
                    break
            else:
                R[t, e] += discount * bootstrap[e]
    return R


@given(st.data(), st.integers(1, 7), st.integers(1, 4), st.floats(0, 1))
def test_returns_equal_the_definition(data: st.DataObject, T: int, B: int, gamma: float) -> None:
    r = data.draw(arrays(np.float64, (T, B), elements=FLOATS))
    terminal = data.draw(arrays(np.bool_, (T, B)))
    bootstrap = data.draw(arrays(np.float64, (B,), elements=FLOATS))
    R = n_step_returns(torch.from_numpy(r), torch.from_numpy(terminal), torch.from_numpy(bootstrap), gamma)
    np.testing.assert_allclose(R.numpy(), oracle(r, terminal, bootstrap, gamma), rtol=1e-6, atol=1e-6)


def test_returns_stop_at_an_episodes_end() -> None:
    r = torch.tensor([[1.0], [2.0], [4.0]])
    terminal = torch.tensor([[False], [True], [False]])
    R = n_step_returns(r, terminal, torch.tensor([100.0]), 0.5)
    assert R[:, 0].tolist() == [2.0, 2.0, 54.0]


def advantage_oracle(
    r: NDArray[np.float64],
    terminal: NDArray[np.bool_],
    V: NDArray[np.float64],
    gamma: float,
    lambda_: float,
) -> NDArray[np.float64]:
    """Schulman et al. 2016, equation 16, term by term: sum_l (gamma lambda)^l delta_{t+l}; V of s_0 … s_T."""
    T, B = r.shape
    A = np.zeros((T, B))
    for e in range(B):
        for t in range(T):
            for k in range(t, T):
                following = 0.0 if terminal[k, e] else gamma * V[k + 1, e]
                A[t, e] += (gamma * lambda_) ** (k - t) * (r[k, e] + following - V[k, e])
                if terminal[k, e]:
                    break
    return A


@given(st.data(), st.integers(1, 7), st.integers(1, 4), st.floats(0, 1), st.floats(0, 1))
def test_advantages_equal_the_definition(
    data: st.DataObject, T: int, B: int, gamma: float, lambda_: float
) -> None:
    r = data.draw(arrays(np.float64, (T, B), elements=FLOATS))
    terminal = data.draw(arrays(np.bool_, (T, B)))
    V = data.draw(arrays(np.float64, (T + 1, B), elements=FLOATS))
    reward_TB, terminated_TB, V_TB = (torch.from_numpy(array) for array in (r, terminal, V))
    A = generalised_advantages(reward_TB, terminated_TB, V_TB[:T], V_TB[T], gamma, lambda_)
    np.testing.assert_allclose(A.numpy(), advantage_oracle(r, terminal, V, gamma, lambda_), atol=1e-6)


def test_returns_and_advantages_refuse_mismatched_shapes() -> None:
    none = torch.zeros(3, 2, dtype=torch.bool)
    with pytest.raises(ValueError, match="do not match"):
        n_step_returns(torch.zeros(3, 2), none, torch.zeros(3), 0.9)
    with pytest.raises(ValueError, match="do not match"):
        generalised_advantages(torch.zeros(3, 2), none, torch.zeros(2, 2), torch.zeros(2), 0.9, 0.9)
