"""Operators on arrays of any rank, in row-major order.

The tensors of these operators are vectors (1, E) that hold the elements of an array in row-major order; the array's
dimensions are attributes. So tensors of any rank, with or without a batch axis, pass through a network whose memory
holds images (C, H, W) only; a Reshape stands where images and arrays meet.

Values are real, or integers and truth values of a fixed type (`Tensor.kind`).
"""
