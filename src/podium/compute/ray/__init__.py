"""Employs the actors of a Ray cluster."""
