"""Runs a search: batches of candidates, proposed, judged and kept."""
