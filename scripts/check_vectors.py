"""Says where this board's NPU computes as documented. Needs numpy, and tflite_runtime or ai_edge_litert.

    python3 check_vectors.py [DELEGATE]

The delegate is /usr/lib/libethosu_delegate.so unless named; "none" for none.
"""
import glob
import json
import sys

import numpy as np

try:
    from tflite_runtime.interpreter import Interpreter, load_delegate
except ImportError:
    from ai_edge_litert.interpreter import Interpreter, load_delegate

delegate = sys.argv[1] if len(sys.argv) > 1 else "/usr/lib/libethosu_delegate.so"
delegates = [] if delegate == "none" else [load_delegate(delegate)]
with open("rules.json") as stream:
    rules = json.load(stream)
differ = []
for path in sorted(glob.glob("*.npz")):
    name, data = path[:-4], np.load(path)
    interpreter = Interpreter(name + ".tflite", experimental_delegates=delegates)
    interpreter.allocate_tensors()
    wrong = worst = 0
    for number in range(3):
        for place, detail in enumerate(interpreter.get_input_details()):
            interpreter.set_tensor(detail["index"], data[f"x{number}_{place}"])
        interpreter.invoke()
        for place, detail in enumerate(interpreter.get_output_details()):
            wanted = data[f"y{number}_{place}"].astype(np.int64)
            apart = interpreter.get_tensor(detail["index"]).astype(np.int64).reshape(wanted.shape) - wanted
            wrong += int((apart != 0).sum())
            worst = max(worst, int(np.abs(apart).max()))
    print(f"{name:50} " + (f"{wrong} values differ, by up to {worst}" if wrong else "equal"))
    if wrong:
        differ.append(name)
print(f"{len(rules) - len(differ)} of {len(rules)} models agree with the documented numerics")
for name in differ:
    print(f"{name} differs; it tells: {'; '.join(rules[name])}")
sys.exit(bool(differ))
