"""Three views of one set of findings: the terminal, JSON, and a page."""
