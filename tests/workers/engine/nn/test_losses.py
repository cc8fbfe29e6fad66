"""Actor-critic gradients against a transcription of Clemente et al. 2017, equations 10 and 11."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from workers.engine.nn.losses import actor_critic_descent, actor_critic_loss


def softmax(z: NDArray[np.float64]) -> NDArray[np.float64]:
    e = np.exp(z - z.max())
    pi: NDArray[np.float64] = e / e.sum()
    return pi


def oracle_gradients(
    logits: NDArray[np.float64],
    v: NDArray[np.float64],
    a: NDArray[np.int64],
    R: NDArray[np.float64],
    beta: float,
    c_v: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Descent directions for logits and values, one decision at a time.

    With p = softmax(z): d log p_a / dz = onehot(a) - p, and dH/dz_j = -p_j (log p_j + H).
    """
    n, A = logits.shape
    d_logits, d_v = np.zeros((n, A)), np.zeros(n)
    for i in range(n):
        p = softmax(logits[i])
        H = -sum(p[j] * np.log(p[j]) for j in range(A))
        for j in range(A):
            ascent = (R[i] - v[i]) * ((j == a[i]) - p[j]) + beta * -p[j] * (np.log(p[j]) + H)
            d_logits[i, j] = -ascent / n
        d_v[i] = c_v * -2 * (R[i] - v[i]) / n
    return d_logits, d_v


@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(2, 5), st.floats(0, 1), st.floats(0, 2))
def test_actor_critic_gradient_equals_the_papers(seed: int, n: int, A: int, beta: float, c_v: float) -> None:
    rng = np.random.default_rng(seed)
    logits, v, R = rng.normal(size=(n, A)) * 3, rng.normal(size=n), rng.normal(size=n)
    a = rng.integers(A, size=n)
    z = torch.from_numpy(logits).requires_grad_()
    value = torch.from_numpy(v).requires_grad_()
    loss = actor_critic_loss(
        z, value, torch.from_numpy(a), torch.from_numpy(R), beta=beta, value_coefficient=c_v
    )
    loss.total.backward()  # type: ignore[no-untyped-call]
    d_logits, d_v = oracle_gradients(logits, v, a, R, beta, c_v)
    assert z.grad is not None
    assert value.grad is not None
    np.testing.assert_allclose(z.grad.numpy(), d_logits, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(value.grad.numpy(), d_v, rtol=1e-6, atol=1e-9)


@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(2, 5), st.floats(0, 1), st.floats(0, 2))
def test_closed_form_gradient_equals_the_papers(seed: int, n: int, A: int, beta: float, c_v: float) -> None:
    rng = np.random.default_rng(seed)
    logits, v, R = rng.normal(size=(n, A)) * 3, rng.normal(size=n), rng.normal(size=n)
    a = rng.integers(A, size=n)
    descent = actor_critic_descent(logits, v, a, R, beta=beta, value_coefficient=c_v)
    d_logits, d_v = oracle_gradients(logits, v, a, R, beta, c_v)
    np.testing.assert_allclose(descent.d_logits_TA, n * d_logits, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(descent.d_value_T, n * d_v, rtol=1e-6, atol=1e-9)


def test_loss_terms_are_the_papers_means() -> None:
    logits = np.log(np.array([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1]]))
    v, R, a = np.array([1.0, -2.0]), np.array([3.0, -1.0]), np.array([0, 1])
    loss = actor_critic_loss(
        torch.from_numpy(logits),
        torch.from_numpy(v),
        torch.from_numpy(a),
        torch.from_numpy(R),
        beta=0.1,
        value_coefficient=0.5,
    )
    policy = -(np.log(0.5) * 2.0 + np.log(0.8) * 1.0) / 2
    value = (2.0**2 + 1.0**2) / 2
    entropy = (1.5 * np.log(2) - (0.8 * np.log(0.8) + 0.2 * np.log(0.1))) / 2
    np.testing.assert_allclose(
        [x.item() for x in loss],
        [policy + 0.5 * value - 0.1 * entropy, policy, value, entropy],
        rtol=1e-6,
    )
    descent = actor_critic_descent(
        np.log(np.array([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1]])), v, a, R, beta=0.1, value_coefficient=0.5
    )
    np.testing.assert_allclose(descent[2:], [policy, value, entropy], rtol=1e-6)


def test_nearly_deterministic_policy_has_a_finite_gradient() -> None:
    """Towards the action that was better than its value: pi - [j = a]."""
    descent = actor_critic_descent(
        np.array([[500.0, -500.0]]),
        np.zeros(1),
        np.ones(1, int),
        np.ones(1),
        beta=0.01,
        value_coefficient=1.0,
    )
    np.testing.assert_allclose(descent.d_logits_TA, [[1.0, -1.0]], atol=1e-12)
