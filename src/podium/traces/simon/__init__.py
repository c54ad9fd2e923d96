"""Cluster files of the hkust scheduler simulator."""
