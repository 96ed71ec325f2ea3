"""How constant weights and biases become integers."""
