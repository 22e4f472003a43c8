"""The export ONNX: the integers of the tool as QuantizeLinear and DequantizeLinear, for any runtime that reads ONNX."""
