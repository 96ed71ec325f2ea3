"""litert-torch on one model of the zoo, in its own environment: python litert_torch_float.py NAME OUT.tflite

A user's model comes with its weights; what giving it lively ones cost is printed, to be taken off.
"""

from __future__ import annotations

import sys
import time

import torch
from export import built, import_torchvision, prepared
from samples import draw
from table import entries

import_torchvision()
(entry,) = entries(sys.argv[1:2])
net = built(entry)
start = time.process_time()
net = prepared(entry, net).eval()
print(f"weights: {time.process_time() - start:.3f} CPU seconds", flush=True)

import litert_torch  # noqa: E402  (torchvision's missing operators have to be declared first)

with torch.no_grad():
    litert_torch.convert(net, draw(entry, 1, 1)).export(sys.argv[2])
