"""Judges candidates on a Ray cluster."""
