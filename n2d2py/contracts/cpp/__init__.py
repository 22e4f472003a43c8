"""Contract of C++: how a layer becomes code."""
