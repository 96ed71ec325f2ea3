"""The command stream of an Ethos-U: its container, its commands with their fields, a disassembler and a writer."""
