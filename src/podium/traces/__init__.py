"""Sources of clusters and workloads: embedded, CSV, Kubernetes manifests, simulator configs."""

from podium.traces.catalogue import LoadOptions, TraceInfo, list_traces, load_trace
from podium.traces.save import save_trace
from podium.traces.trace import Experiment, Trace

__all__ = [
    "Experiment", "LoadOptions", "Trace", "TraceInfo", "list_traces", "load_trace", "save_trace",
]  # fmt: skip
