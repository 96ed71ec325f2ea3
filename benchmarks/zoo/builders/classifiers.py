"""Models whose architecture timm has, with its own initial weights."""

from __future__ import annotations

from typing import Any

from torch import nn


def timm_model(name: str, **options: Any) -> nn.Module:
    """Return a timm model by its name."""
    import timm

    return timm.create_model(name, pretrained=False, **options)


def timm_deployed(name: str, **options: Any) -> nn.Module:
    """Return a timm model whose training-time branches are joined as they are before it is shipped."""
    from timm.utils.model import reparameterize_model

    return reparameterize_model(timm_model(name, **options))


def torchvision_model(name: str, **options: Any) -> nn.Module:
    """Return a torchvision classifier by its name."""
    from torchvision import models

    return getattr(models, name)(weights=None, **options)
