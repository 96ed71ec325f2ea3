"""Writes forms of a float TFLite file as ai-edge-quantizer makes them; runs in an environment that has it.

    python peer_forms.py FLOAT.tflite FOLDER
"""

import sys

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from ai_edge_quantizer import qtyping, quantizer, recipe

source, folder = sys.argv[1:3]
interpreter = Interpreter(source)
key, names = next(iter(interpreter.get_signature_list().items()))
name = names["inputs"][0]
shape = tuple(interpreter.get_signature_runner(key).get_input_details()[name]["shape"])
samples = {key: [{name: np.random.default_rng(0).random(shape, np.float32)}]}
names = qtyping.TFLOperationName
FLOAT = quantizer.AlgorithmName.NO_QUANTIZE
FORMS = {"static": (), "mixed": (names.LOGISTIC, names.SOFTMAX), "float_ends": (names.INPUT, names.OUTPUT)}

tool = quantizer.Quantizer(source)
tool.load_quantization_recipe(recipe.dynamic_wi8_afp32())
tool.quantize().export_model(f"{folder}/dynamic.tflite", overwrite=True)
for form, kept in FORMS.items():
    tool = quantizer.Quantizer(source)
    tool.load_quantization_recipe(recipe.static_wi8_ai8())
    seen = tool.calibrate(samples)
    for kind in kept:
        tool.update_quantization_recipe(regex=".*", operation_name=kind, algorithm_key=FLOAT)
    tool.quantize(seen).export_model(f"{folder}/{form}.tflite", overwrite=True)
