"""Measures how long a dump of 20,000 pods takes to read, against PyYAML's own loader.

    python bench/dump_reading.py [--nodes 1000] [--pods 20000]

Writes what `kubectl get nodes,pods -A -o yaml` prints of such a cluster into a file, lets one
process read it as a trace and another with `yaml.CSafeLoader`, and prints CPU seconds and memory
of both.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

_READ = """
import resource, sys, time
start = time.process_time()
{0}
used = time.process_time() - start
print(used, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
_PODIUM = """
from podium.traces import load_trace
trace = load_trace(sys.argv[1])
assert len(trace.workload) == int(sys.argv[2])
"""
_PLAIN = """
import yaml
with open(sys.argv[1]) as stream:
    assert len(yaml.load(stream, yaml.CSafeLoader)["items"]) > int(sys.argv[2])
"""

NODE = """\
- apiVersion: v1
  kind: Node
  metadata:
    annotations:
      node.alpha.kubernetes.io/ttl: "0"
      volumes.kubernetes.io/controller-managed-attach-detach: "true"
    creationTimestamp: "2026-01-10T08:00:00Z"
    labels:
      kubernetes.io/arch: amd64
      kubernetes.io/hostname: {name}
      nvidia.com/gpu.count: "8"
      nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3
      topology.kubernetes.io/zone: zone-a
{managed}    name: {name}
    resourceVersion: "98765432"
    uid: 9a50a2f0-5af6-4f5e-8f0e-0d7a4d2f1c11
  spec:
    podCIDR: 10.0.1.0/24
    podCIDRs:
    - 10.0.1.0/24
    providerID: example:///zone-a/i-0123456789abcdef0
  status:
    addresses:
    - address: 10.0.1.1
      type: InternalIP
    - address: {name}
      type: Hostname
    allocatable:
      cpu: "192"
      ephemeral-storage: "1676305843198"
      hugepages-2Mi: "0"
      memory: 2097152Mi
      nvidia.com/gpu: "8"
      pods: "110"
    capacity:
      cpu: "192"
      ephemeral-storage: 1864584192Ki
      memory: 2097152Mi
      nvidia.com/gpu: "8"
      pods: "110"
    conditions:
    - lastHeartbeatTime: "2026-03-01T08:00:00Z"
      lastTransitionTime: "2026-01-10T08:00:10Z"
      message: kubelet is posting ready status
      reason: KubeletReady
      status: "True"
      type: Ready
    images:
{images}    nodeInfo:
      architecture: amd64
      kernelVersion: 6.8.0
      kubeletVersion: v1.36.4
"""

POD = """\
- apiVersion: v1
  kind: Pod
  metadata:
    annotations:
      cni.example.org/podIP: 10.0.1.17/32
    creationTimestamp: "2026-02-27T11:22:33Z"
    generateName: {owner}-
    labels:
      app: {owner}
      batch.kubernetes.io/job-name: {owner}
      controller-uid: 5c0b67b9-0b1b-4a0a-8a3f-5ef7b2b8d0a4
{managed}    name: {name}
    namespace: team-{team}
    ownerReferences:
    - apiVersion: batch/v1
      blockOwnerDeletion: true
      controller: true
      kind: Job
      name: {owner}
      uid: 5c0b67b9-0b1b-4a0a-8a3f-5ef7b2b8d0a4
    resourceVersion: "98765433"
    uid: 3f7d1c1e-7c6b-4a51-8fd6-55c1d2c9a001
  spec:
    containers:
    - args:
      - --config=/etc/train/config.yaml
      - --epochs=30
      command:
      - python
      - train.py
      env:
      - name: NCCL_DEBUG
        value: INFO
      - name: POD_NAME
        valueFrom:
          fieldRef:
            apiVersion: v1
            fieldPath: metadata.name
      - name: MASTER_ADDR
        value: {owner}-0.{owner}
      image: registry.example.org/team/train:2026.02
      imagePullPolicy: IfNotPresent
      name: train
      resources:
        limits:
          cpu: "{cpu}"
          memory: 64Gi
          nvidia.com/gpu: "{gpus}"
        requests:
          cpu: "{cpu}"
          memory: 64Gi
          nvidia.com/gpu: "{gpus}"
      terminationMessagePath: /dev/termination-log
      terminationMessagePolicy: File
      volumeMounts:
      - mountPath: /etc/train
        name: config
      - mountPath: /var/run/secrets/kubernetes.io/serviceaccount
        name: kube-api-access
        readOnly: true
    dnsPolicy: ClusterFirst
    enableServiceLinks: true
{place}    preemptionPolicy: PreemptLowerPriority
    priority: 0
    restartPolicy: Never
    schedulerName: default-scheduler
    securityContext: {{}}
    serviceAccount: default
    serviceAccountName: default
    terminationGracePeriodSeconds: 30
    tolerations:
    - effect: NoExecute
      key: node.kubernetes.io/not-ready
      operator: Exists
      tolerationSeconds: 300
    - effect: NoExecute
      key: node.kubernetes.io/unreachable
      operator: Exists
      tolerationSeconds: 300
    volumes:
    - configMap:
        defaultMode: 420
        name: {owner}
      name: config
    - name: kube-api-access
      projected:
        defaultMode: 420
        sources:
        - serviceAccountToken:
            expirationSeconds: 3607
            path: token
        - configMap:
            items:
            - key: ca.crt
              path: ca.crt
            name: kube-root-ca.crt
  status:
{status}"""

RUNNING = """\
    conditions:
    - lastProbeTime: null
      lastTransitionTime: "2026-02-27T11:22:40Z"
      status: "True"
      type: Ready
    - lastProbeTime: null
      lastTransitionTime: "2026-02-27T11:22:34Z"
      status: "True"
      type: PodScheduled
    containerStatuses:
    - containerID: containerd://0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9
      image: registry.example.org/team/train:2026.02
      imageID: registry.example.org/team/train@sha256:0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f
      lastState: {}
      name: train
      ready: true
      restartCount: 0
      started: true
      state:
        running:
          startedAt: "2026-02-27T11:22:39Z"
    hostIP: 10.0.1.1
    phase: Running
    podIP: 10.0.1.17
    podIPs:
    - ip: 10.0.1.17
    qosClass: Burstable
    startTime: "2026-02-27T11:22:34Z"
"""

PENDING = """\
    conditions:
    - lastProbeTime: null
      lastTransitionTime: "2026-02-27T11:22:34Z"
      message: '0/1000 nodes are available: 1000 Insufficient nvidia.com/gpu. preemption:
        0/1000 nodes are available: 1000 No preemption victims found for incoming pod.'
      reason: Unschedulable
      status: "False"
      type: PodScheduled
    phase: Pending
    qosClass: Burstable
"""

_FIELDS = ("env", "image", "imagePullPolicy", "name", "resources", "terminationMessagePath")


def main() -> None:
    """Writes the dump, reads it twice, and prints what that took."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=20_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dump.yaml"
        path.write_text("".join(dump(asked.nodes, asked.pods)), encoding="utf-8")
        print(f"{asked.nodes:,} nodes, {asked.pods:,} pods, {path.stat().st_size / 2**20:.0f} MiB")
        podium, plain = (_measured(code, path, asked.pods) for code in (_PODIUM, _PLAIN))
    for name, (cpu_s, memory_mib) in (("podium", podium), ("CSafeLoader", plain)):
        print(f"{name:11s}  {cpu_s:6.1f} s of CPU  {memory_mib:6,.0f} MiB")
    print(f"ratio        {podium[0] / plain[0]:6.2f}           {podium[1] / plain[1]:6.2f}")


def dump(nodes: int, pods: int) -> Iterator[str]:
    """Yields the text of a dump: every fifth pod waits, the others run."""
    yield "apiVersion: v1\nitems:\n"
    images = "".join(
        f"    - names:\n      - registry.example.org/image-{n}@sha256:{n:064d}\n"
        f"      - registry.example.org/image-{n}:v1\n      sizeBytes: {n}000000\n"
        for n in range(30)
    )
    for number in range(nodes):
        yield NODE.format(name=f"gpu-{number:04d}", images=images, managed=_managed("f:capacity"))
    for number in range(pods):
        waits = number % 5 == 0
        place = "" if waits else f"    nodeName: gpu-{number % nodes:04d}\n"
        yield POD.format(
            name=f"train-{number // 4}-{number % 4}", owner=f"train-{number // 4}",
            team=number % 12, cpu=2 + number % 6, gpus=number % 3 % 2, place=place,
            managed=_managed("f:containers"), status=PENDING if waits else RUNNING,
        )  # fmt: skip
    yield 'kind: List\nmetadata:\n  resourceVersion: ""\n'


def _managed(field: str) -> str:
    """Writes who set which fields, which is a third of every real dump."""
    owned = "".join(f"            f:{name}: {{}}\n" for name in _FIELDS)
    return "    managedFields:\n" + "".join(
        f"    - apiVersion: v1\n      fieldsType: FieldsV1\n      fieldsV1:\n        f:spec:\n"
        f"          {field}:\n            .: {{}}\n{owned}"
        f'      manager: {manager}\n      operation: Update\n      time: "2026-02-27T11:22:33Z"\n'
        for manager in ("kube-controller-manager", "kubelet", "kueue-admission")
    )


def _measured(code: str, path: Path, pods: int) -> tuple[float, float]:
    """Runs a program in a process of its own; gives its CPU seconds and its most memory in MiB."""
    command = [sys.executable, "-c", _READ.format(code), str(path), str(pods)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    cpu_s, memory_mib = done.stdout.split()
    return float(cpu_s), float(memory_mib)


if __name__ == "__main__":
    main()
