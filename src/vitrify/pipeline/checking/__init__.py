"""`check`: where nodes run on a target, the reasons, what each costs, and the fixes."""
