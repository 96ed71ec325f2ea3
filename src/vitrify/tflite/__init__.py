"""The TFLite file format: reader, writer, and what kind of model a file holds."""

from vitrify.tflite.choosing import Candidate, Choice, choose
from vitrify.tflite.kind import Contents, Kind, classify, contents, float_operators, operator_counts, transposes
from vitrify.tflite.reading import read, read_bytes
from vitrify.tflite.writing import to_bytes, write

__all__ = ["Candidate", "Choice", "Contents", "Kind", "choose", "classify", "contents", "float_operators",
           "operator_counts", "read", "read_bytes", "to_bytes", "transposes", "write"]
