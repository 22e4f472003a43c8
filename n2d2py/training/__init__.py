"""Training of a Graph with PyTorch. No other part of the package imports PyTorch."""
