"""Makes integers of weights: scales, rounding, the forms of weighted sums."""
