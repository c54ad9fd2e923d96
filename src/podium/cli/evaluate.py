"""Compares policies with the usual ones on unseen seeds, in several settings."""
