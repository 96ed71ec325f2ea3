"""What executes a command stream: memories, feature maps, the operations and the numbers they compute with."""
