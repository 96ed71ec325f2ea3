"""Models that transformers describes by a configuration, and RF-DETR; no weights are fetched."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from weights import observe, rescale


class Outputs(nn.Module):
    """A model of transformers that gives plain tensors: those with these names, in this order."""

    def __init__(self, net: nn.Module, inputs: tuple[str, ...], outputs: tuple[str, ...]):
        super().__init__()
        self.net, self.inputs, self.outputs = net, inputs, outputs

    def forward(self, *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = self.net(**dict(zip(self.inputs, values, strict=True)))
        return tuple(getattr(found, name) for name in self.outputs)


class Fixed(nn.Module):
    """Gives a model for pictures all of its pixels as valid, which users of fixed shapes do."""

    def __init__(self, net: nn.Module, outputs: tuple[str, ...], positive: nn.Module | None = None):
        super().__init__()
        self.net, self.outputs, self.positive = net, outputs, positive

    def forward(self, pixels: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = self.net(pixel_values=pixels)
        return tuple(getattr(found, name) for name in self.outputs)


def minilm() -> nn.Module:
    """all-MiniLM-L6: six layers of BERT, 384 wide; the sentence vector is the mean over tokens that count."""
    from transformers import BertConfig, BertModel

    return SentenceVector(BertModel(BertConfig(
        hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)))


class SentenceVector(nn.Module):
    """Mean over the tokens that count, at length one."""

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        tokens = self.net(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        kept = attention_mask.unsqueeze(-1).to(tokens.dtype)
        mean = (tokens * kept).sum(1) / kept.sum(1).clamp(min=1e-9)
        return nn.functional.normalize(mean, dim=-1)


def whisper_encoder() -> nn.Module:
    """The encoder of Whisper tiny: 30 s of mel frames."""
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    net = WhisperEncoder(WhisperConfig(d_model=384, encoder_layers=4, encoder_attention_heads=6,
                                       encoder_ffn_dim=1536, decoder_layers=4, decoder_attention_heads=6,
                                       decoder_ffn_dim=1536))
    return Outputs(net, ("input_features",), ("last_hidden_state",))


def segformer() -> nn.Module:
    """SegFormer-B0 with the classes of ADE20K."""
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    return Fixed(SegformerForSemanticSegmentation(SegformerConfig(num_labels=150)), ("logits",))


def detr(layers: int = 6) -> nn.Module:
    """DETR on ResNet-50."""
    from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig

    backbone = ResNetConfig(out_features=["stage4"])
    config = DetrConfig(use_timm_backbone=False, use_pretrained_backbone=False, backbone=None,
                        backbone_config=backbone, encoder_layers=layers, decoder_layers=layers, num_labels=91)
    return Fixed(DetrForObjectDetection(config), ("logits", "pred_boxes"))


def rt_detr() -> nn.Module:
    """RT-DETR on ResNet-18."""
    from transformers import RTDetrConfig, RTDetrForObjectDetection, RTDetrResNetConfig

    backbone = RTDetrResNetConfig(layer_type="basic", depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512],
                                  out_features=["stage2", "stage3", "stage4"])
    config = RTDetrConfig(backbone_config=backbone, use_pretrained_backbone=False, decoder_layers=3,
                          encoder_in_channels=[128, 256, 512], num_labels=80, anchor_image_size=[640, 640])
    return Fixed(RTDetrForObjectDetection(config), ("logits", "pred_boxes"))


def depth_anything() -> nn.Module:
    """Depth Anything small: DINOv2 with a dense prediction head."""
    from transformers import DepthAnythingConfig, DepthAnythingForDepthEstimation, Dinov2Config

    backbone = Dinov2Config(hidden_size=384, num_attention_heads=6, image_size=518, patch_size=14,
                            out_features=["stage3", "stage6", "stage9", "stage12"], apply_layernorm=True,
                            reshape_hidden_states=False)
    config = DepthAnythingConfig(backbone_config=backbone, reassemble_hidden_size=384,
                                 neck_hidden_sizes=[48, 96, 192, 384], fusion_hidden_size=64)
    net = DepthAnythingForDepthEstimation(config)
    return Fixed(net, ("predicted_depth",), net.head.conv3)


def rf_detr_nano() -> nn.Module:
    """RF-DETR nano, in the form that its own exporter gives it."""
    from rfdetr.config import RFDETRNanoConfig
    from rfdetr.models.lwdetr import build_model_from_config

    net = build_model_from_config(RFDETRNanoConfig(device="cpu")).eval()
    net.export()
    return First(net, 2)


def finish(net: nn.Module, batch: tuple[torch.Tensor, ...]) -> nn.Module:
    """Lift the layer before a last ReLU, which passes nothing at random."""
    layer = getattr(net, "positive", None)
    if layer is not None:
        rescale(layer, observe(net, [layer], batch)[0], 1.0, 3.0)
    return net


class First(nn.Module):
    """The first outputs of a model."""

    def __init__(self, net: nn.Module, count: int):
        super().__init__()
        self.net, self.count = net, count

    def forward(self, *values: Any) -> tuple[torch.Tensor, ...]:
        return tuple(self.net(*values)[:self.count])
