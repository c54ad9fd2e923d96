"""Environments on the simulator's own kernel: what is learned there holds in `simulate`."""
