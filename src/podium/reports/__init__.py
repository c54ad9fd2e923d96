"""Reports: summaries, comparisons and reproductions of published experiments."""
