"""Learns policies by trial on the exact simulator."""
