"""Serves HTTP for all components: connections, limits, tokens, errors, probes and metrics."""
