"""Contract of quantization: how a layer gets its integer form."""
