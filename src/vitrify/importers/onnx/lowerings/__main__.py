"""Write down which file declares which lowering."""

from __future__ import annotations

import json

from vitrify.importers.onnx.lowerings import FILES, declared

FILES.write_text(json.dumps(declared(), indent=1) + "\n")
