"""ONNX's protobuf messages, without what else `import onnx` brings.

Reading a file takes one module of that package, the generated one. The package around it loads checkers, helpers and
small element types first: 0.11 s of CPU at every start, a tenth of a whole conversion.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

_NAME = "onnx.onnx_ml_pb2"


def model_proto() -> Any:
    """Return the class ``ModelProto``.

    The module is loaded under its own name, so that a later `import onnx` finds it and its classes stay the same.
    """
    module = sys.modules.get(_NAME) or _alone() or import_module(_NAME)
    return module.ModelProto


def _alone() -> ModuleType | None:
    """Load the module without its package; None where the package has another shape than a folder with that file."""
    package = find_spec("onnx")
    places = package.submodule_search_locations if package is not None else None
    file = next((f for place in places or () if (f := Path(place) / "onnx_ml_pb2.py").is_file()), None)
    spec = spec_from_file_location(_NAME, file) if file is not None else None
    if spec is None or spec.loader is None:
        return None
    module = module_from_spec(spec)
    sys.modules[_NAME] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[_NAME]
        raise
    return module
