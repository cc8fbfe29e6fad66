"""Optimizers over one flat parameter vector."""

import math
from types import ModuleType
from typing import Any, Protocol

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

_GOLDEN = (math.sqrt(5) - 1) / 2
"""Its multiples, without their whole parts, lie far from each other."""


class FlatParameters:
    """A network's parameters and gradients as two vectors; the network's own tensors are views of them."""

    theta: Tensor
    """All parameters, (P,) float32."""
    dtheta: Tensor
    """All gradients, (P,) float32; `backward` adds to it."""

    def __init__(
        self, network: nn.Module, *, theta: Tensor | None = None, dtheta: Tensor | None = None
    ) -> None:
        """Take over a network.

        Args:
            network: its parameters become views of `theta`, their gradients of `dtheta`.
            theta: shared memory that already holds the parameters, (P,); by default the network's own
                values are copied to new memory.
            dtheta: memory for the gradients, (P,); by default new.

        Raises:
            ValueError: `theta` or `dtheta` is not of P elements.
        """
        parameters = list(network.parameters())
        own = torch.cat([_storage_order(p.detach()).reshape(-1) for p in parameters])
        self.theta = own if theta is None else theta
        self.dtheta = torch.zeros_like(own) if dtheta is None else dtheta
        if not own.shape == self.theta.shape == self.dtheta.shape:
            raise ValueError(f"parameters of another network: {len(self.theta)} for {len(own)}")
        start = 0
        for p in parameters:
            end = start + p.numel()
            shape = _storage_order(p.detach()).shape
            p.data = _logical_order(self.theta[start:end].view(shape))
            p.grad = _logical_order(self.dtheta[start:end].view(shape))
            start = end


def _storage_order(weight: Tensor) -> Tensor:
    """(O, C, H, W) -> (O, H, W, C): convolutions run faster on weights kept channels-last."""
    return weight.permute(0, 2, 3, 1) if weight.dim() == 4 else weight


def _logical_order(weight: Tensor) -> Tensor:
    return weight.permute(0, 3, 1, 2) if weight.dim() == 4 else weight


def clip_grad_norm_(dtheta: Tensor, max_norm: float) -> Tensor:
    """Scale `dtheta` in place so that its Euclidean norm is at most `max_norm` (Pascanu et al. 2012).

    Returns:
        The norm before clipping, a scalar.
    """
    norm: Tensor = torch.linalg.vector_norm(dtheta)
    # On a GPU, to ask for the norm would mean to wait for it.
    if dtheta.is_cuda or norm > max_norm:
        dtheta.mul_(torch.clamp(max_norm / (norm + 1e-12), max=1.0))
    return norm


def _has_kernel(theta: Tensor) -> bool:
    """Whether `kernels` has a loop over it."""
    return theta.device.type == "cpu" and theta.dtype == torch.float32


def _kernels() -> ModuleType:
    # Numba takes 44 MB of a process: only of those that step.
    from workers.engine import kernels

    return kernels


class _Pass:
    """Over vectors that several actors go over at once: each two from elsewhere, one of them backwards."""

    def __init__(self, length: int, actor: int) -> None:
        self._begin = int(actor // 2 * _GOLDEN % 1 * length)
        self.backwards = actor % 2 == 1

    def parts(self, *vectors: Tensor) -> list[list[NDArray[Any]]]:
        """The part of each of `vectors`, (P,) and contiguous, that is first, then the rest."""
        assert len({len(vector) for vector in vectors}) == 1
        arrays = [vector.numpy() for vector in vectors]
        if not self._begin:
            return [arrays]
        parts = [[array[part] for array in arrays] for part in (slice(self._begin, None), slice(self._begin))]
        return parts[::-1] if self.backwards else parts


class RMSProp:
    """Non-centred RMSProp as in Mnih et al. 2016, equation 1 (supplement, section 7).

        g <- decay g + (1 - decay) dtheta^2
        theta <- theta - learning_rate dtheta / sqrt(g + eps)

    The eps stands inside the root. g begins at 0. Given memory that several actors share, theta and g are
    updated without locks: shared RMSProp.
    """

    def __init__(
        self, theta: Tensor, *, decay: float, eps: float, g: Tensor | None = None, actor: int = 0
    ) -> None:
        """Update `theta`, with `g` where it is given; `actor` is which of those who share them this is."""
        self.theta = theta
        self._pass = _Pass(len(theta), actor)
        self.g = torch.zeros_like(theta) if g is None else g
        self.decay = decay
        self.eps = eps

    @torch.no_grad()
    def step(self, dtheta: Tensor, learning_rate: float) -> None:
        """One update of theta, in place.

        Args:
            dtheta: gradient of the loss, (P,).
            learning_rate: eta, alpha in Clemente et al. 2017.
        """
        rest = 1.0 - self.decay
        if _has_kernel(self.theta):
            kernels = _kernels()
            backwards = self._pass.backwards
            for theta, g, d in self._pass.parts(self.theta, self.g, dtheta):
                kernels.rmsprop(theta, g, d, learning_rate, self.decay, rest, self.eps, backwards)
            return
        self.g.mul_(self.decay).addcmul_(dtheta, dtheta, value=rest)
        self.theta.addcmul_(dtheta, self.g.add(self.eps).rsqrt_(), value=-learning_rate)


class MomentumSGD:
    """Momentum SGD as in Mnih et al. 2016 (supplement, section 7); m is the actor-learner's own.

    m <- momentum m + (1 - momentum) dtheta
    theta <- theta - learning_rate m
    """

    def __init__(self, theta: Tensor, *, momentum: float, m: Tensor) -> None:
        self.theta = theta
        self.m = m
        self.momentum = momentum

    @torch.no_grad()
    def step(self, dtheta: Tensor, learning_rate: float) -> None:
        """One update of theta, in place; arguments as for `RMSProp.step`."""
        self.m.mul_(self.momentum).add_(dtheta, alpha=1.0 - self.momentum)
        self.theta.add_(self.m, alpha=-learning_rate)


class SharedAdam:
    """Adam (Kingma and Ba 2015) whose moments and count of updates lie in memory that several actors share.

        m <- 0.9 m + 0.1 dtheta,   v <- 0.999 v + 0.001 dtheta^2,   n <- n + 1
        theta <- theta - learning_rate (m / (1 - 0.9^n)) / (sqrt(v / (1 - 0.999^n)) + 1e-8)

    Not in Mnih et al. 2016; ikostrikov/pytorch-a3c's optimizer.
    """

    def __init__(self, theta: Tensor, *, m: Tensor, v: Tensor, n: Tensor, actor: int = 0) -> None:
        """Update `theta` with moments `m` and `v`, each (P,), and the count `n`, a scalar, all float32."""
        self.theta = theta
        self._m, self._v, self._n = m, v, n
        self._pass = _Pass(len(theta), actor)

    @torch.no_grad()
    def step(self, dtheta: Tensor, learning_rate: float) -> None:
        """One update of theta, in place; arguments as for `RMSProp.step`."""
        n = self._n.add_(1).item()
        unbias_m, unbias_v = 1 / (1 - 0.9**n), 1 / (1 - 0.999**n)
        kernels = _kernels()
        backwards = self._pass.backwards
        for theta, m, v, d in self._pass.parts(self.theta, self._m, self._v, dtheta):
            kernels.adam(theta, m, v, d, learning_rate, unbias_m, unbias_v, backwards)


class CentredRMSProp:
    """DQN's RMSProp (Mnih et al. 2015), which divides by the gradient's deviation, not its root mean square.

        m <- decay m + (1 - decay) dtheta
        g <- decay g + (1 - decay) dtheta^2
        theta <- theta - learning_rate dtheta / sqrt(g - m^2 + eps)

    The eps is the paper's minimum squared gradient. m and g begin at 0.
    """

    def __init__(self, theta: Tensor, *, decay: float, eps: float) -> None:
        self.theta = theta
        self.decay = decay
        self.eps = eps
        self.m = torch.zeros_like(theta)
        self.g = torch.zeros_like(theta)

    @torch.no_grad()
    def step(self, dtheta: Tensor, learning_rate: float) -> None:
        """One update of theta, in place; arguments as for `RMSProp.step`."""
        rest = 1.0 - self.decay
        if _has_kernel(self.theta):
            assert len(dtheta) == len(self.theta)
            theta, m, g = self.theta.numpy(), self.m.numpy(), self.g.numpy()
            _kernels().centred_rmsprop(theta, m, g, dtheta.numpy(), learning_rate, self.decay, rest, self.eps)
            return
        self.m.lerp_(dtheta, rest)
        self.g.mul_(self.decay).addcmul_(dtheta, dtheta, value=rest)
        divisor = self.g.add(self.eps).addcmul_(self.m, self.m, value=-1.0).rsqrt_()
        self.theta.addcmul_(dtheta, divisor, value=-learning_rate)

    def statistics(self) -> dict[str, Tensor]:
        """What it remembers, by name."""
        return {"m": self.m, "g": self.g}


class AdaGrad:
    """AdaGrad (Duchi et al. 2011): each parameter's steps shrink as its gradients add up.

    g <- g + dtheta^2
    theta <- theta - learning_rate dtheta / sqrt(g + eps)
    """

    def __init__(self, theta: Tensor, *, eps: float) -> None:
        self.theta = theta
        self.eps = eps
        self.g = torch.zeros_like(theta)
        self._divisor = torch.empty_like(theta)

    @torch.no_grad()
    def step(self, dtheta: Tensor, learning_rate: float) -> None:
        """One update of theta, in place; arguments as for `RMSProp.step`."""
        self.g.addcmul_(dtheta, dtheta)
        torch.add(self.g, self.eps, out=self._divisor).rsqrt_()
        self.theta.addcmul_(dtheta, self._divisor, value=-learning_rate)

    def statistics(self) -> dict[str, Tensor]:
        """What it remembers, by name."""
        return {"g": self.g}


class Optimizer(Protocol):
    """What turns a gradient into an update of theta, in place."""

    def step(self, dtheta: Tensor, learning_rate: float) -> None:
        """One update."""
