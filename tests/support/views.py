"""Makes pods and nodes as plain Python policies see them, and the same as records."""

import numpy as np

from podium.model.records import ANY_MODEL, NODE_8, NODE_16, POD, Node, Pod


def pod(cpu=0, memory=0, gpus=0, milli=0, models=ANY_MODEL):
    """Makes a pod; `milli` is per GPU and 1000 unless given."""
    per_gpu = milli or (1000 if gpus else 0)
    return Pod(cpu, memory, gpus, per_gpu, models, 0, 0)


def node(cpu=(0, 0), memory=(0, 0), gpus=(), model=0, classes=0, slots=8):
    """Makes a node from (left, total) pairs and the free milli of each GPU."""
    free = (*gpus, *[0] * (slots - len(gpus)))
    return Node(
        *cpu, *memory, len(gpus), model if gpus else -1, rack=-1, gpu_classes=classes,
        gpu_milli_left=free,
    )  # fmt: skip


def pod_record(view):
    return np.array([tuple(view)], POD)[0]


def node_record(view):
    return node_records([view])[0]


def node_records(views):
    wide = len(views[0].gpu_milli_left) > 8
    return np.array([tuple(view) for view in views], NODE_16 if wide else NODE_8)
