"""Sources of clusters and workloads."""
