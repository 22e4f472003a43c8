"""Chooses the number type of every tensor, and the tensors that stay in floating point."""
