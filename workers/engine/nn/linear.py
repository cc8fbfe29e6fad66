"""Matrix products by the library that is faster on a CPU, and a linear layer that uses them.

PyTorch computes those of float32 by MKL. oneDNN, which computes the convolutions, takes half as long for a
minibatch on an AMD processor with AVX-512 (measured: 240 GFLOP/s a core, MKL 105).
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

_ONEDNN: Any = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
"""PyTorch's private operator for oneDNN's inner product; None in builds without oneDNN."""


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """X W^T + b, (N, O), of x (N, I) and W (O, I), without autograd."""
    # For one row the time goes to memory, not to arithmetic.
    if _ONEDNN is None or x.device.type != "cpu" or x.dtype != torch.float32 or len(x) == 1:
        return linear(x, weight, bias)
    y: Tensor = _ONEDNN(x, weight, bias, "none", [], "")
    return y


class Linear(nn.Linear):
    """PyTorch's layer, computed by `product` in both passes."""

    def forward(self, x: Tensor) -> Tensor:
        """(N, O) of x (N, I)."""
        if x.device.type != "cpu" or torch.is_autocast_enabled("cpu"):
            return super().forward(x)
        y: Tensor = _Product.apply(x, self.weight, self.bias)  # type: ignore[no-untyped-call]
        return y


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, d: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        d_x = product(d, weight.t()) if ctx.needs_input_grad[0] else None
        return d_x, product(d.t(), x.t()), d.sum(0)


def add_gradient_(parameter: Tensor, gradient: Tensor) -> None:
    """Add to the parameter's `grad`, which exists."""
    assert parameter.grad is not None
    parameter.grad.add_(gradient)


_FEW_ROWS = 16
"""With so few rows a product is limited by memory: it is added in place, without a temporary matrix."""


def add_product_(parameter: Tensor, left: Tensor, right: Tensor) -> None:
    """Add left @ right to the parameter's `grad`, which has its size."""
    assert parameter.grad is not None
    left, right = left.to(parameter.dtype), right.to(parameter.dtype)
    if left.is_cuda or len(right) <= _FEW_ROWS:
        parameter.grad.addmm_(left, right)
    else:
        parameter.grad.add_(product(left, right.t()))
