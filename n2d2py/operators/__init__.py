"""The operators: attributes, shape rule, cost, float arithmetic, integer arithmetic. One room each."""
