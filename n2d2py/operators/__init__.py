"""The operators: attributes, shape inference, cost, float and integer arithmetic, file formats and C++ in one module each."""
