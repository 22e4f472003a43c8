"""What the operators are: attributes, shape rule, cost, float arithmetic, integer arithmetic. One room each."""
