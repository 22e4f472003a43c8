"""Rewrites of typed networks, QuantGraph to QuantGraph, that leave every integer unchanged."""
