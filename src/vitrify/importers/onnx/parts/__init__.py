"""What several lowerings are made of: attention, normalization, pools, interpolation, arithmetic on indices."""
