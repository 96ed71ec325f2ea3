"""The graph of TFLite operators that everything works on. No file format is known here."""

from vitrify.ir.dtypes import DType
from vitrify.ir.graph import Graph, Model, Node, Signature, Tensor, TensorType
from vitrify.ir.interface import InputBinding, Interface, OutputBinding, Part
from vitrify.ir.ledger import Exactness, Ledger, LedgerEntry
from vitrify.ir.operator import Operator
from vitrify.ir.origin import Origin, Source
from vitrify.ir.quantization import Quantization

__all__ = ["DType", "Exactness", "Graph", "InputBinding", "Interface", "Ledger", "LedgerEntry", "Model", "Node",
           "Operator", "Origin", "OutputBinding", "Part", "Quantization", "Signature", "Source", "Tensor",
           "TensorType"]
