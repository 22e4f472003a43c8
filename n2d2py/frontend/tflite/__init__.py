"""Import of TFLite files."""
