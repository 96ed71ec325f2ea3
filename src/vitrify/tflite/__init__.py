"""The TFLite file format: reader, writer, and what kind of model a file holds."""

from vitrify.tflite.reading import read, read_bytes
from vitrify.tflite.writing import to_bytes, write

__all__ = ["read", "read_bytes", "to_bytes", "write"]
