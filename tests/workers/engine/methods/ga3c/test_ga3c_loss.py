"""GA3C's gradient against a transcription of Babaeizadeh et al. 2017, equations 2 and 5."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from workers.engine.nn.losses import ga3c_loss


def oracle_gradients(
    logits: NDArray[np.float64],
    v: NDArray[np.float64],
    a: NDArray[np.int64],
    R: NDArray[np.float64],
    beta: float,
    c_v: float,
    eps: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Descent directions for logits and values, one experience at a time, summed by nobody.

    With p = softmax(z) and q = p + eps: d log q_a / dz_j = p_a (1[a = j] - p_j) / q_a, and
    dH/dz_j = -p_j [ (log q_j + 1) - sum_k p_k (log q_k + 1) ].
    """
    n, A = logits.shape
    d_logits, d_v = np.zeros((n, A)), np.zeros(n)
    for i in range(n):
        p = np.exp(logits[i] - logits[i].max())
        p /= p.sum()
        q = p + eps
        mean = sum(p[k] * (np.log(q[k]) + 1) for k in range(A))
        for j in range(A):
            policy = (R[i] - v[i]) * p[a[i]] * ((j == a[i]) - p[j]) / q[a[i]]
            entropy = -p[j] * ((np.log(q[j]) + 1) - mean)
            d_logits[i, j] = -(policy + beta * entropy)
        d_v[i] = -2 * c_v * (R[i] - v[i])
    return d_logits, d_v


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 8),
    st.integers(2, 5),
    st.floats(0, 1),
    st.floats(0, 2),
    st.sampled_from([1e-6, 1e-2]),
)
def test_ga3c_gradient_equals_the_papers(
    seed: int, n: int, A: int, beta: float, c_v: float, eps: float
) -> None:
    rng = np.random.default_rng(seed)
    logits, v, R = rng.normal(size=(n, A)) * 3, rng.normal(size=n), rng.normal(size=n)
    a = rng.integers(A, size=n)
    z = torch.from_numpy(logits).requires_grad_()
    value = torch.from_numpy(v).requires_grad_()
    loss = ga3c_loss(
        z, value, torch.from_numpy(a), torch.from_numpy(R), beta=beta, value_coefficient=c_v, log_eps=eps
    )
    loss.total.backward()  # type: ignore[no-untyped-call]
    d_logits, d_v = oracle_gradients(logits, v, a, R, beta, c_v, eps)
    assert z.grad is not None
    assert value.grad is not None
    np.testing.assert_allclose(z.grad.numpy(), d_logits, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(value.grad.numpy(), d_v, rtol=1e-6, atol=1e-9)


def test_log_eps_bounds_the_loss_of_an_impossible_action() -> None:
    """Without eps the logarithm, and so the loss, would be infinite (section 4.4)."""
    logits = torch.tensor([[0.0, -200.0]], requires_grad=True)
    loss = ga3c_loss(
        logits,
        torch.zeros(1),
        torch.tensor([1]),
        torch.ones(1),
        beta=0.01,
        value_coefficient=1.0,
        log_eps=1e-6,
    )
    assert loss.policy.item() == pytest.approx(-np.log(1e-6), rel=1e-5)
    loss.total.backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()
