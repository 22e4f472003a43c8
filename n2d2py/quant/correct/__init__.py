"""Changes weights, biases and ranges so that the integers lose less."""
