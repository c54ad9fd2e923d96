"""Trains the net that scores one pod on one node: imitation, policy gradient, evolution."""
