"""Products against NumPy's, and the layer's gradient against that of PyTorch's own layer."""

import numpy as np
import pytest
import torch
from torch import nn

from workers.engine.nn.linear import Linear, product


@pytest.mark.parametrize("N", [1, 2, 5, 33])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_linear_product_equals_numpys(N: int, dtype: torch.dtype) -> None:
    rng = np.random.default_rng(N)
    x, weight, bias = (torch.from_numpy(rng.normal(size=s)).to(dtype) for s in ((N, 70), (40, 70), (40,)))
    wanted = x.double().numpy() @ weight.double().numpy().T
    atol = 0.3 if dtype == torch.bfloat16 else 1e-4
    np.testing.assert_allclose(product(x, weight).double(), wanted, rtol=0, atol=atol)
    np.testing.assert_allclose(
        product(x, weight, bias).double(), wanted + bias.double().numpy(), rtol=0, atol=atol
    )
    turned = weight.t().contiguous().t()
    np.testing.assert_allclose(product(x, turned).double(), wanted, rtol=0, atol=atol)


@pytest.mark.parametrize("N", [1, 33])
def test_linear_gradient_equals_pytorchs(N: int) -> None:
    torch.manual_seed(N)
    mine, theirs = Linear(70, 40), nn.Linear(70, 40)
    theirs.load_state_dict(mine.state_dict())
    x, weights = torch.randn(N, 70), torch.randn(N, 40)
    gradients = []
    for layer in (mine, theirs):
        y = layer(leaf := x.clone().requires_grad_())
        gradients.append(torch.autograd.grad((y * weights).sum(), [leaf, *layer.parameters()]))
    for gradient, other in zip(*gradients, strict=True):
        torch.testing.assert_close(gradient, other, rtol=1e-5, atol=1e-5)
