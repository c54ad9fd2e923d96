"""Evaluates trained networks from their weights: NumPy and Numba, never what trained them."""
