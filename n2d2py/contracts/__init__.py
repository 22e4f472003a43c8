"""Contracts of operators: the tables and types with which the facets of an operator are declared. They know no operator."""
