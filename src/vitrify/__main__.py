"""`python -m vitrify` is `vitrify`."""

from vitrify.cli.main import main

main()
