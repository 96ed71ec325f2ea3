"""From the bytes of an ONNX file to plain objects that are checked: a graph, its weights, its functions."""
