"""Genetic programming over readable policies."""
