"""The scheduler extender: scores the pods of a live cluster for kube-scheduler."""
