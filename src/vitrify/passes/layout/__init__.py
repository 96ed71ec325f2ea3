"""From the source's layout to the runtime's: TRANSPOSEs cancelled, absorbed, or moved where they cost least.

Every tensor may be *stored* permuted. ``rules_*`` say, per operator, how a permuted input or output permutes the rest;
``flood`` spreads permutations from one TRANSPOSE as far as the rules allow; ``cut`` chooses which part of that region
to change, by minimum cut over the bytes of the TRANSPOSEs that the choice needs; ``change`` rewrites that part.
"""
