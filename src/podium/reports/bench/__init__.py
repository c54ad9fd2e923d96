"""Measures how fast Podium is on this machine."""
