"""What every layer needs: findings, errors, whole-or-nothing files, child processes, progress. Knows nothing of models."""
