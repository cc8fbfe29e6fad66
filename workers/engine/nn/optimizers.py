"""Optimizers over one flat parameter vector."""

import math
from types import ModuleType
from typing import Any, Protocol

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

_GOLDEN = (math.sqrt(5) - 1) / 2
"""The fractional parts of its multiples are spread evenly over 0 to 1."""


class FlatParameters:
    """A network's parameters and gradients as two vectors; the network's own tensors are views of them."""

    theta: Tensor
    """All parameters, (P,) float32."""
    dtheta: Tensor
    """All gradients, (P,) float32; `backward` adds to it."""

    def __init__(
        self, network: nn.Module, *, theta: Tensor | None = None, dtheta: Tensor | None = None
    ) -> None:
        """Move a network's parameters and gradients to flat memory.

        Args:
            network: its parameters become views of `theta`, their gradients of `dtheta`.
            theta: shared memory that already holds the parameters, (P,); by default the network's own
                values are copied to new memory.
            dtheta: memory for the gradients, (P,); by default new.

        Raises:
            ValueError: `theta` or `dtheta` is not of P elements.
        """
        parameters = list(network.parameters())
        own = torch.cat([storage_order(p.detach()).reshape(-1) for p in parameters])
        self.theta = own if theta is None else theta
        self.dtheta = torch.zeros_like(own) if dtheta is None else dtheta
        if not own.shape == self.theta.shape == self.dtheta.shape:
            raise ValueError(f"parameters of another network: {len(self.theta)} for {len(own)}")
        start = 0
        for p in parameters:
            end = start + p.numel()
            shape = storage_order(p.detach()).shape
            p.data = logical_order(self.theta[start:end].view(shape))
            p.grad = logical_order(self.dtheta[start:end].view(shape))
            start = end


def storage_order(weight: Tensor) -> Tensor:
    """(O, C, H, W) -> (O, H, W, C): convolutions run faster on weights kept channels-last."""
    return weight.permute(0, 2, 3, 1) if weight.dim() == 4 else weight


def logical_order(weight: Tensor) -> Tensor:
    """(O, H, W, C) -> (O, C, H, W), the inverse of `storage_order`."""
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
    """Whether `kernels` has a loop for its device and dtype."""
    return theta.device.type == "cpu" and theta.dtype == torch.float32


def _kernels() -> ModuleType:
    """Loops that compute the same as the lines of PyTorch beside each call, faster."""
    # Numba takes 44 MB: it is imported only in processes that need it.
    from workers.engine.nn import kernels

    return kernels


def load_kernels(theta: Tensor) -> None:
    """Compile the loops that update `theta`, or load them from their cache, before the first update."""
    if _has_kernel(theta):
        _kernels()


class _Pass:
    """The order in which an actor updates shared vectors; see `kernels` on processes in step with each other.

    Each pair of actors starts at another element, one of the two from there backwards.
    """

    def __init__(self, length: int, actor: int) -> None:
        self._begin = int(actor // 2 * _GOLDEN % 1 * length)
        self.backwards = actor % 2 == 1

    def parts(self, *vectors: Tensor) -> list[list[NDArray[Any]]]:
        """The first part of each of `vectors`, (P,) and contiguous, then the rest of each."""
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

    eps is inside the root. Shared RMSProp: several actors update shared theta and g without locks.

    The paper does not print g before the first update. It is 0 by default: the first step is
    learning_rate dtheta / sqrt((1 - decay) dtheta^2 + eps). TensorFlow's `RMSPropOptimizer`, in the codes of
    PAAC's and GA3C's authors, starts at 1: with eps 0.1 its first steps are sqrt(1.1 / 0.1) = 3.3 times
    smaller where gradients are small.
    """

    def __init__(
        self,
        theta: Tensor,
        *,
        decay: float,
        eps: float,
        initial_g: float = 0.0,
        g: Tensor | None = None,
        actor: int = 0,
    ) -> None:
        """Optimise `theta`.

        Args:
            theta: parameters, (P,).
            decay: alpha in Mnih et al. 2016.
            eps: epsilon, inside the root.
            initial_g: g before the first update, of every parameter; not used if `g` is given.
            g: shared memory for g, (P,), which its owner initialises; by default new.
            actor: number of this actor.
        """
        self.theta = theta
        self._pass = _Pass(len(theta), actor)
        self.g = torch.full_like(theta, initial_g) if g is None else g
        self.decay = decay
        self.eps = eps

    @torch.no_grad()
    def step(self, dtheta: Tensor, learning_rate: float | Tensor) -> None:
        """One update of theta, in place.

        Args:
            dtheta: gradient of the loss, (P,).
            learning_rate: eta, alpha in Clemente et al. 2017; a scalar on the GPU in a CUDA graph, which
                would keep a number for ever.
        """
        rest = 1.0 - self.decay
        if _has_kernel(self.theta):
            kernels, learning_rate = _kernels(), float(learning_rate)
            backwards = self._pass.backwards
            for theta, g, d in self._pass.parts(self.theta, self.g, dtheta):
                kernels.rmsprop(theta, g, d, learning_rate, self.decay, rest, self.eps, backwards)
            return
        self.g.mul_(self.decay).addcmul_(dtheta, dtheta, value=rest)
        self.theta.sub_(self.g.add(self.eps).rsqrt_().mul_(dtheta).mul_(learning_rate))

    def statistics(self) -> dict[str, Tensor]:
        """Its running statistics by name; checkpoints store them."""
        return {"g": self.g}


class MomentumSGD:
    """Momentum SGD as in Mnih et al. 2016 (supplement, section 7); each actor-learner has its own m.

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


class Adam:
    """Adam (Kingma and Ba 2015); several actors may share its moments and its count of updates.

        m <- 0.9 m + 0.1 dtheta,   v <- 0.999 v + 0.001 dtheta^2,   n <- n + 1
        theta <- theta - learning_rate (m / (1 - 0.9^n)) / (sqrt(v / (1 - 0.999^n)) + 1e-8)

    Shared, it is the optimizer of ikostrikov/pytorch-a3c; not in Mnih et al. 2016.
    """

    def __init__(
        self,
        theta: Tensor,
        *,
        m: Tensor | None = None,
        v: Tensor | None = None,
        n: Tensor | None = None,
        actor: int = 0,
    ) -> None:
        """Optimise `theta`.

        Args:
            theta: parameters, (P,).
            m: shared memory for the first moment, (P,); by default new.
            v: shared memory for the second moment, (P,); by default new.
            n: shared memory for the count of updates, a scalar float32; by default new.
            actor: number of this actor.
        """
        self.theta = theta
        self._m = torch.zeros_like(theta) if m is None else m
        self._v = torch.zeros_like(theta) if v is None else v
        self._n = torch.zeros((), device=theta.device) if n is None else n
        self._pass = _Pass(len(theta), actor)

    @torch.no_grad()
    def step(self, dtheta: Tensor, learning_rate: float | Tensor) -> None:
        """One update of theta, in place; arguments as for `RMSProp.step`."""
        self._n.add_(1)
        if _has_kernel(self.theta):
            n = self._n.item()
            unbias_m, unbias_v = 1 / (1 - 0.9**n), 1 / (1 - 0.999**n)
            kernels, learning_rate = _kernels(), float(learning_rate)
            backwards = self._pass.backwards
            for theta, m, v, d in self._pass.parts(self.theta, self._m, self._v, dtheta):
                kernels.adam(theta, m, v, d, learning_rate, unbias_m, unbias_v, backwards)
            return
        self._m.mul_(0.9).add_(dtheta, alpha=0.1)
        self._v.mul_(0.999).addcmul_(dtheta, dtheta, value=0.001)
        n_updates = self._n.double()  # 0.999^n is close to 1
        rate = (learning_rate / (1 - 0.9**n_updates)).to(self.theta.dtype)
        divisor = (self._v / (1 - 0.999**n_updates).to(self.theta.dtype)).sqrt_().add_(1e-8)
        self.theta.sub_(divisor.reciprocal_().mul_(self._m).mul_(rate))

    def statistics(self) -> dict[str, Tensor]:
        """Its running statistics by name; checkpoints store them."""
        return {"m": self._m, "v": self._v, "n": self._n}


class CentredRMSProp:
    """DQN's RMSProp (Mnih et al. 2015): it divides by the gradient's standard deviation.

        m <- decay m + (1 - decay) dtheta
        g <- decay g + (1 - decay) dtheta^2
        theta <- theta - learning_rate dtheta / sqrt(g - m^2 + eps)

    eps is the paper's minimum squared gradient. m and g start at 0.
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
        """Its running statistics by name; checkpoints store them."""
        return {"m": self.m, "g": self.g}


class AdaGrad:
    """AdaGrad (Duchi et al. 2011): the steps of a parameter shrink as its squared gradients add up.

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
        """Its running statistics by name; checkpoints store them."""
        return {"g": self.g}


class Optimizer(Protocol):
    """Updates theta in place by a gradient."""

    def step(self, dtheta: Tensor, learning_rate: float) -> None:
        """One update."""
