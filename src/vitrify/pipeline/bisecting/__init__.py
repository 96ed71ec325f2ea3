"""What brings an error: passes switched off from the end, operators left in float."""
