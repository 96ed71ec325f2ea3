"""`python -m vitrify` is `vitrify`."""

from vitrify.cli.start import main

main()
