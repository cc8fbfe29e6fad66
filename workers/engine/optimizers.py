"""Optimizers over one flat parameter vector."""

import torch
from torch import Tensor, nn


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
    dtheta.mul_(torch.clamp(max_norm / (norm + 1e-12), max=1.0))
    return norm


class RMSProp:
    """Non-centred RMSProp as in Mnih et al. 2016, equation 1 (supplement, section 7).

        g <- decay g + (1 - decay) dtheta^2
        theta <- theta - learning_rate dtheta / sqrt(g + eps)

    The eps stands inside the root. g begins at 0.
    """

    def __init__(self, theta: Tensor, *, decay: float, eps: float) -> None:
        self.theta = theta
        self.g = torch.zeros_like(theta)
        self.decay = decay
        self.eps = eps

    @torch.no_grad()
    def step(self, dtheta: Tensor, learning_rate: float) -> None:
        """One update of theta, in place.

        Args:
            dtheta: gradient of the loss, (P,).
            learning_rate: eta, alpha in Clemente et al. 2017.
        """
        self.g.mul_(self.decay).addcmul_(dtheta, dtheta, value=1.0 - self.decay)
        self.theta.addcdiv_(dtheta, (self.g + self.eps).sqrt_(), value=-learning_rate)
