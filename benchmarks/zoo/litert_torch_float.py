"""litert-torch on one model of the zoo, in its own environment: python litert_torch_float.py NAME OUT.tflite"""

from __future__ import annotations

import sys

import torch
from export import build, import_torchvision
from samples import draw
from table import entries

import_torchvision()
(entry,) = entries(sys.argv[1:2])
net = build(entry).eval()

import litert_torch  # noqa: E402  (torchvision's missing operators have to be declared first)

with torch.no_grad():
    litert_torch.convert(net, draw(entry, 1, 1)).export(sys.argv[2])
