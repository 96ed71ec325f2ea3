"""Arm's Vela compiler for the Ethos-U NPUs: a model in, a compiled model, verdicts with reasons and an estimate out.

    compiled = compile_model("model_int8.tflite", "imx93", "model_vela.tflite")
    print(compiled.placement, compiled.estimate)
"""

from vitrify.backends.base import OperatorRow
from vitrify.backends.vela.compiled import NpuGraph, npu_graphs
from vitrify.backends.vela.compiling import check_model, compile_model
from vitrify.backends.vela.describing import Compiled
from vitrify.backends.vela.searching import Setting, Trial, best, search_settings

__all__ = ["Compiled", "NpuGraph", "OperatorRow", "Setting", "Trial", "best", "check_model", "compile_model",
           "npu_graphs", "search_settings"]
