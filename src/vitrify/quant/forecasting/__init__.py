"""What rounding will cost a float model, told before it is quantized."""
