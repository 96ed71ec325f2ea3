"""What every layer needs: findings, errors, whole files, child processes, progress. Knows nothing of models."""
