"""What is measured: histograms and moments of tensors, integers beside real values, outputs by what they decide."""
