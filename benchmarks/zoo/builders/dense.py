"""Models that give a value for each pixel: segmentation, depth, super-resolution."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from builders.layers import conv


class UNet(nn.Module):
    """Four levels of two convolutions, transposed convolutions back up."""

    def __init__(self, classes: int = 4, widths: tuple[int, ...] = (32, 64, 128, 256)):
        super().__init__()
        def pair(i: int, o: int) -> nn.Module:
            return nn.Sequential(conv(i, o), conv(o, o))
        self.down = nn.ModuleList(pair(i, o) for i, o in zip((3, *widths), widths, strict=False))
        inner = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.up = nn.ModuleList(nn.ConvTranspose2d(i, o, 2, 2) for i, o in inner)
        self.joined = nn.ModuleList(pair(i, o) for i, o in inner)
        self.last = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept: list[torch.Tensor] = []
        for k, down in enumerate(self.down):
            x = down(functional.max_pool2d(x, 2) if k else x)
            kept.append(x)
        for up, joined, other in zip(self.up, self.joined, kept[-2::-1], strict=True):
            x = joined(torch.cat((up(x), other), 1))
        return self.last(x)


class Gather(nn.Module):
    """BiSeNetV2's gather-and-expand layer."""

    def __init__(self, i: int, o: int, stride: int):
        super().__init__()
        hidden = 6 * i
        steps = [conv(i, i), conv(i, hidden, 3, stride, i, activation=None)]
        if stride == 2:
            steps.append(conv(hidden, hidden, 3, 1, hidden, activation=None))
        self.through = nn.Sequential(*steps, conv(hidden, o, 1, activation=None))
        self.around = nn.Sequential(conv(i, i, 3, 2, i, activation=None), conv(i, o, 1, activation=None)) \
            if stride == 2 else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.through(x) + self.around(x))


class BiSeNetV2(nn.Module):
    """A wide path for detail, a deep one for meaning, and the layer in which each gates the other."""

    def __init__(self, classes: int = 19):
        super().__init__()
        self.detail = nn.Sequential(conv(3, 64, 3, 2), conv(64, 64), conv(64, 64, 3, 2), conv(64, 64), conv(64, 64),
                                    conv(64, 128, 3, 2), conv(128, 128), conv(128, 128))
        self.stem = conv(3, 16, 3, 2)
        self.left = nn.Sequential(conv(16, 8, 1), conv(8, 16, 3, 2))
        self.stem_joined = conv(32, 16)
        self.meaning = nn.Sequential(Gather(16, 32, 2), Gather(32, 32, 1), Gather(32, 64, 2), Gather(64, 64, 1),
                                     Gather(64, 128, 2), *(Gather(128, 128, 1) for _ in range(3)))
        self.context_norm, self.context_one = nn.BatchNorm2d(128), conv(128, 128, 1)
        self.context = conv(128, 128)
        self.detail_keep = nn.Sequential(conv(128, 128, 3, 1, 128, activation=None), nn.Conv2d(128, 128, 1))
        self.detail_down = nn.Sequential(conv(128, 128, 3, 2, activation=None), nn.AvgPool2d(3, 2, 1))
        self.meaning_keep = nn.Sequential(conv(128, 128, 3, 1, 128, activation=None), nn.Conv2d(128, 128, 1))
        self.meaning_up = conv(128, 128, activation=None)
        self.joined = conv(128, 128, activation=None)
        self.last = nn.Sequential(conv(128, 1024), nn.Conv2d(1024, classes, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        detail = self.detail(x)
        stem = self.stem(x)
        pooled = functional.max_pool2d(stem, 3, 2, 1)
        meaning = self.meaning(self.stem_joined(torch.cat((self.left(stem), pooled), 1)))
        whole = self.context_one(self.context_norm(meaning.mean((2, 3), keepdim=True)))
        meaning = self.context(meaning + whole)
        up = functional.interpolate(self.meaning_up(meaning), scale_factor=4.0, mode="bilinear")
        fine = self.detail_keep(detail) * up.sigmoid()
        coarse = self.detail_down(detail) * self.meaning_keep(meaning).sigmoid()
        joined = self.joined(fine + functional.interpolate(coarse, scale_factor=4.0, mode="bilinear"))
        logits = self.last(joined)
        return functional.interpolate(logits, size=x.shape[2:], mode="bilinear", align_corners=True)


class Residual(nn.Module):
    """MiDaS's unit: two convolutions added to their input, activation first."""

    def __init__(self, width: int):
        super().__init__()
        self.one, self.two = nn.Conv2d(width, width, 3, 1, 1), nn.Conv2d(width, width, 3, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.two(functional.relu(self.one(functional.relu(x))))


class MidasSmall(nn.Module):
    """MiDaS v2.1 small: EfficientNet-Lite3 features, fused from coarse to fine, depth at full size."""

    def __init__(self, width: int = 64):
        super().__init__()
        import timm

        self.backbone = timm.create_model("efficientnet_lite3", pretrained=False, features_only=True,
                                          out_indices=(1, 2, 3, 4))
        widths = [width * 2 ** k for k in range(4)]
        self.reduce = nn.ModuleList(nn.Conv2d(i, o, 3, 1, 1, bias=False)
                                    for i, o in zip(self.backbone.feature_info.channels(), widths, strict=True))
        self.sides = nn.ModuleList(Residual(w) for w in widths[:3])
        self.units = nn.ModuleList(Residual(w) for w in widths)
        self.outs = nn.ModuleList(nn.Conv2d(w, max(w // 2, width), 1) for w in widths)
        self.last = nn.ModuleList([nn.Conv2d(width, width // 2, 3, 1, 1), nn.Conv2d(width // 2, 32, 3, 1, 1),
                                   nn.Conv2d(32, 1, 1)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        features = [r(f) for r, f in zip(self.reduce, self.backbone(x), strict=True)]
        y = features[3]
        for k in (3, 2, 1, 0):
            if k < 3:
                y = y + self.sides[k](features[k])
            y = functional.interpolate(self.units[k](y), scale_factor=2.0, mode="bilinear", align_corners=True)
            y = self.outs[k](y)
        y = functional.interpolate(self.last[0](y), scale_factor=2.0, mode="bilinear")
        return functional.relu(self.last[2](functional.relu(self.last[1](y)))).squeeze(1)


class DenseBlock(nn.Module):
    """ESRGAN's block: five convolutions, each sees all before it; a fifth of the result is added."""

    def __init__(self, width: int, growth: int):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(width + k * growth, growth if k < 4 else width, 3, 1, 1) for k in range(5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen = [x]
        for k, layer in enumerate(self.convs):
            y = layer(torch.cat(seen, 1))
            seen.append(functional.leaky_relu(y, 0.2) if k < 4 else y)
        return x + 0.2 * seen[-1]


class Esrgan(nn.Module):
    """Super-resolution by four: residual-in-residual dense blocks, nearest neighbours doubled twice."""

    def __init__(self, blocks: int = 6, width: int = 64, growth: int = 32):
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, 1, 1)
        self.blocks = nn.ModuleList(nn.Sequential(*(DenseBlock(width, growth) for _ in range(3)))
                                    for _ in range(blocks))
        self.body, self.up1, self.up2, self.fine = (nn.Conv2d(width, width, 3, 1, 1) for _ in range(4))
        self.last = nn.Conv2d(width, 3, 3, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = self.first(x)
        y = first
        for block in self.blocks:
            y = y + 0.2 * block(y)
        y = first + self.body(y)
        for up in (self.up1, self.up2):
            y = functional.leaky_relu(up(functional.interpolate(y, scale_factor=2.0)), 0.2)
        return self.last(functional.leaky_relu(self.fine(y), 0.2))


class Espcn(nn.Module):
    """Super-resolution by three on luminance: pixels from channels."""

    def __init__(self, factor: int = 3):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 64, 5, 1, 2), nn.Tanh(), nn.Conv2d(64, 32, 3, 1, 1), nn.Tanh(),
                                    nn.Conv2d(32, factor ** 2, 3, 1, 1), nn.PixelShuffle(factor))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class Only(nn.Module):
    """The result that users of torchvision's segmentation models ship."""

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)["out"]


def unet() -> nn.Module:
    """U-Net."""
    return UNet()


def bisenet() -> nn.Module:
    """BiSeNetV2."""
    return BiSeNetV2()


def midas_small() -> nn.Module:
    """MiDaS small."""
    return MidasSmall()


def esrgan(blocks: int = 6) -> nn.Module:
    """ESRGAN-like."""
    return Esrgan(blocks)


def espcn() -> nn.Module:
    """ESPCN."""
    return Espcn()


def torchvision_segmentation(name: str, classes: int = 21) -> nn.Module:
    """Return a segmentation model of torchvision by its name."""
    from torchvision.models import segmentation

    return Only(getattr(segmentation, name)(weights=None, weights_backbone=None, num_classes=classes))
