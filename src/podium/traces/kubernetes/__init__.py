"""Kubernetes manifests: nodes and pods, read and written."""
