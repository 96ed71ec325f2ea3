"""Static int8 with ai-edge-quantizer: FLOAT.tflite SAMPLES.npy(NCHW) OUTPUT.tflite. Runs in the peer's environment."""

import sys

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from ai_edge_quantizer import quantizer, recipe

source, samples, output = sys.argv[1:4]
interpreter = Interpreter(source)
key, names = next(iter(interpreter.get_signature_list().items()))
name = names["inputs"][0]
shape = tuple(interpreter.get_signature_runner(key).get_input_details()[name]["shape"])
arrays = np.load(samples)
if shape[1:] != arrays.shape[1:]:
    arrays = np.moveaxis(arrays, 1, -1)
tool = quantizer.Quantizer(source)
tool.load_quantization_recipe(recipe.static_wi8_ai8())
result = tool.calibrate({key: [{name: np.ascontiguousarray(a[None])} for a in arrays]}, num_threads=2)
tool.quantize(result).export_model(output, overwrite=True)
