"""Learns a condensed Q-table: what each node is worth in each binned state of a small cluster."""
