"""From a float Graph and statistics of its tensors to a QuantGraph, and the integer simulator."""
