"""Which number type every tensor gets, and which stay in floating point."""
