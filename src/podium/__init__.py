"""GPU scheduling for Kubernetes that learns."""

__version__ = "0.1.0"
