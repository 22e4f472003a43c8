"""Operators on arrays of any rank, in row-major order.

Their tensors are vectors (1, E) with the elements of an array in row-major order; the array's dimensions are attributes.
Tensors of any rank, with or without a batch axis, thus fit into a network whose other tensors are images (C, H, W). A Reshape
converts between images and arrays. Values are real, or integers and booleans of a fixed type (`Tensor.kind`).

Two have a relative among the layers on images and compute something else. ArrayMap is any function of numbers, integers or
booleans, broadcast as in ONNX; ElemWise weights its inputs. ArrayInterpolate applies a table of rows and weights along one axis.
Conv3D and Pool3D slide over up to three axes, in floating point; weights may be computed in the network.
"""
