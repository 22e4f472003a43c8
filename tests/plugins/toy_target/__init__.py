"""A target in a package of its own: a processor of integers that runs fully connected layers, one after the other."""
