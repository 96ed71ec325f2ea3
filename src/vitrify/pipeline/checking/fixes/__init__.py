"""`check --fix`: rewrites that bring operators to the NPU, each proved by running the model before and after.

    outcome = fix_model(tflite.read("model_int8.tflite"), "imx93")
    print(outcome.cpu_before, outcome.cpu_after, [(row.name, row.places, row.won_ms) for row in outcome.rows])
"""

from vitrify.pipeline.checking.fixes.driving import fix_model

__all__ = ["fix_model"]
