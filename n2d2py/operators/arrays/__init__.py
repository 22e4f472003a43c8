"""Operators on arrays of any rank, in row-major order.

Their tensors are vectors (1, E) with the elements of an array in row-major order; the array's dimensions are attributes.
Tensors of any rank, with or without a batch axis, thus fit into a network whose other tensors are images (C, H, W). A Reshape
converts between images and arrays. Values are real, or integers and booleans of a fixed type (`Tensor.kind`).
"""
