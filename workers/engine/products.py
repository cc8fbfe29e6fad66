"""Products of matrices, each by the library that does them faster on a CPU.

PyTorch leaves those of float32 to MKL. oneDNN, which does the convolutions, takes half as long for a
minibatch on a processor of AMD's with AVX-512 (measured: 240 GFLOP/s a core, MKL 105).
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

_ONEDNN: Any = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
"""PyTorch's own name for oneDNN's inner product; absent where it was built without."""


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Gives x W^T + b, (N, O), of x (N, I) and W (O, I); outside autograd."""
    # One row is a matter of memory, not of arithmetic.
    if _ONEDNN is None or x.device.type != "cpu" or x.dtype != torch.float32 or len(x) == 1:
        return linear(x, weight, bias)
    y: Tensor = _ONEDNN(x, weight, bias, "none", [], "")
    return y


class Linear(nn.Linear):
    """PyTorch's layer, by `product`, there and back."""

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
