"""Training of a Graph with PyTorch, which is imported here only: no other part of the package needs it."""
