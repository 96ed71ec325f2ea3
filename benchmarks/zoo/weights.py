"""Random weights that behave as trained ones do: no dead layer, no exploding one, statistics that fit the data.

Weights as libraries draw them leave traps for a comparison: norms that do nothing, branches multiplied by zero or by
1e-6, running statistics of data never seen. What is set here is what training would have moved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import nn

LEAST_BRANCH = 0.01
"""A layer scale below this hides the branch that it multiplies; trained ones are of the order of ``BRANCH``."""
BRANCH = 0.3


def norms(net: nn.Module) -> Iterator[nn.Module]:
    """Yield the modules that normalise and then scale, of any library."""
    for module in net.modules():
        gain = getattr(module, "weight", None)
        if "Norm" in type(module).__name__ and isinstance(gain, torch.Tensor) and gain.ndim == 1:
            yield module


def enliven(net: nn.Module, generator: torch.Generator) -> None:
    """Give norms gains in 0.5..1.5, wake layer scales, and fill parameters that are all zero with small values."""
    for module in norms(net):
        module.weight.data = 0.5 + torch.rand(module.weight.shape, generator=generator)
        if getattr(module, "bias", None) is not None:
            module.bias.data = 0.1 * torch.randn(module.bias.shape, generator=generator)
    for name, value in net.named_parameters():
        if not value.is_floating_point() or not value.numel():
            continue
        largest = float(value.detach().abs().max())
        if largest == 0:
            value.data = 0.02 * torch.randn(value.shape, generator=generator)
        elif largest < LEAST_BRANCH and any(word in name for word in ("gamma", "layer_scale", "lambda", ".ls")):
            value.data = BRANCH * (0.5 + torch.rand(value.shape, generator=generator))


def estimate_statistics(net: nn.Module, batches: Sequence[tuple[torch.Tensor, ...]]) -> None:
    """Let every BatchNorm measure its mean and variance on ``batches``; everything else stays in evaluation mode."""
    found = [m for m in net.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    if not found:
        return
    for module in found:
        module.reset_running_stats()
        module.momentum = None              # the plain mean over all batches
        module.train()
    with torch.no_grad():
        for batch in batches:
            net(*batch)
    net.eval()


def settle(net: nn.Module, batches: Sequence[tuple[torch.Tensor, ...]]) -> nn.Module:
    """Return ``net`` in evaluation mode with lively weights and fitting statistics."""
    net.eval()
    enliven(net, torch.Generator().manual_seed(7))
    estimate_statistics(net, batches)
    return net.requires_grad_(False)


def rescale(layer: nn.Module, output: torch.Tensor, deviation: float, mean: float | None = None) -> None:
    """Scale a last layer so that its ``output`` has this deviation, and this mean per channel where one is given."""
    factor = deviation / float(output.std())
    layer.weight.data *= factor
    if layer.bias is not None:
        layer.bias.data *= factor
        if mean is not None:
            layer.bias.data += mean - factor * output.mean([d for d in range(output.ndim) if d != 1])


def observe(net: nn.Module, layers: Sequence[nn.Module], batch: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    """Run ``net`` once and return what each of ``layers`` gave last."""
    seen: dict[int, torch.Tensor] = {}
    hooks = [layer.register_forward_hook(lambda _m, _i, out, k=k: seen.__setitem__(k, out))
             for k, layer in enumerate(layers)]
    with torch.no_grad():
        net(*batch)
    for hook in hooks:
        hook.remove()
    return [seen[k] for k in range(len(layers))]
