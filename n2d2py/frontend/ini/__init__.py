"""INI layer sections, targets and weights, read into a Graph."""
