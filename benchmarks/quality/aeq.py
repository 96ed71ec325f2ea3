"""Static int8 with ai-edge-quantizer: FLOAT.tflite SAMPLES.npz OUTPUT.tflite. Runs in the peer's environment.

SAMPLES holds an array for each of the file's inputs, in the order of its signature, samples along a new first axis.
"""

import sys

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from ai_edge_quantizer import quantizer, recipe

source, samples, output = sys.argv[1:4]
key, names = next(iter(Interpreter(source).get_signature_list().items()))
with np.load(samples) as file:
    arrays = {name: file[name] for name in names["inputs"]}
count = len(next(iter(arrays.values())))
tool = quantizer.Quantizer(source)
tool.load_quantization_recipe(recipe.static_wi8_ai8())
result = tool.calibrate({key: [{n: np.ascontiguousarray(a[k]) for n, a in arrays.items()} for k in range(count)]})
tool.quantize(result).export_model(output, overwrite=True)
