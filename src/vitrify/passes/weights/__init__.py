"""What constant weights can take over: scales, biases, paddings, the order of channels."""
