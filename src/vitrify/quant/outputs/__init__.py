"""Parts of very different range that meet in one tensor, and how they are taken apart."""
