"""Finds policies: candidates are judged safely, in gates, before anything is kept."""
