"""Draws descriptions of nodes and pods for property tests."""

from hypothesis import strategies as st

from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.model.cluster import LIMIT
from podium.model.constraints import (
    Constraints,
    HostPort,
    NodeTerm,
    PodSelector,
    PodTerm,
    Requirement,
    Spread,
    Toleration,
    VolumeRule,
)
from podium.traces import Trace
from podium.traces.kubernetes import keys

MODELS = ("A10", "G2", "NVIDIA-A100-SXM4-80GB", "V100M32")

# Letters of all kinds, without the white space that readers strip from cells.
texts = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp"]), max_size=12
)
names = texts.filter(bool)
amounts = st.integers(0, LIMIT - 1)  # a manifest that asks for LIMIT asks for too much
label_keys = texts.filter(lambda key: key not in (*keys.RACK_LABELS, *keys.MODEL_LABELS))
times = st.one_of(
    st.integers(0, 10**7).map(float),
    st.floats(0, 1e12, allow_nan=False),
    st.just(1e300),
)


@st.composite
def node_specs(draw):
    gpu_count = draw(st.integers(0, 16))
    return NodeSpec(
        name=draw(names),
        cpu_milli=draw(amounts),
        memory_mib=draw(amounts),
        gpu_count=gpu_count,
        gpu_model=draw(st.sampled_from(("", *MODELS))) if gpu_count else "",
        rack=draw(st.sampled_from(["", "rack-0", "rack-1"])),
        labels=draw(st.dictionaries(label_keys, texts, max_size=3)),
    )


@st.composite
def pod_specs(draw, has_arrivals, has_durations):
    gpu_count = draw(st.sampled_from([0, 1, 1, 2, 8, 16]))
    milli = 1000 if gpu_count else 0
    if gpu_count == 1:
        milli = draw(st.integers(1, 1000))
    models = draw(st.lists(st.sampled_from(MODELS), max_size=3))
    return PodSpec(
        name=draw(names),
        cpu_milli=draw(amounts),
        memory_mib=draw(amounts),
        gpu_count=gpu_count,
        gpu_milli=milli,
        gpu_spec="|".join(models),
        arrival_s=draw(times) if has_arrivals else None,
        duration_s=draw(times) if has_durations else None,
        priority=draw(st.one_of(st.just(0), st.integers(-LIMIT, LIMIT))),
        gang=draw(st.sampled_from(["", "g", "h"])),
        job_type=draw(st.sampled_from(["", "train"])),
        exit=draw(st.sampled_from(["", "completed", "failed"])),
    )


@st.composite
def clusters(draw):
    specs = draw(st.lists(node_specs(), min_size=1, max_size=5, unique_by=lambda spec: spec.name))
    return Cluster.of(specs)


@st.composite
def workloads(draw, *, has_own_names=False):
    spec = pod_specs(draw(st.booleans()), draw(st.booleans()))
    unique_by = (lambda pod: pod.name) if has_own_names else None
    return Workload.of(draw(st.lists(spec, min_size=1, max_size=5, unique_by=unique_by)))


@st.composite
def traces(draw, *, has_own_names=False):
    workload = draw(workloads(has_own_names=has_own_names))
    return Trace("drawn", draw(clusters()), workload)


words = st.sampled_from(["a", "b", "app", "zone"])
own_namespaces = frozenset({"ml"})


@st.composite
def requirements(draw, operators=("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")):
    operator = draw(st.sampled_from(operators))
    sizes = {"In": (1, 3), "NotIn": (1, 3), "Gt": (1, 1), "Lt": (1, 1)}
    least, most = sizes.get(operator, (0, 0))
    values = draw(st.lists(words, min_size=least, max_size=most, unique=True))
    return Requirement(draw(words), operator, tuple(values))


pod_requirements = requirements(("In", "NotIn", "Exists", "DoesNotExist"))
selectors = st.builds(
    PodSelector,
    st.none() | st.lists(pod_requirements, max_size=2, unique=True).map(tuple),
    st.sampled_from([None, own_namespaces, frozenset({"a", "b"}), frozenset({"", "default"})]),
)
node_terms = st.builds(
    NodeTerm,
    st.lists(requirements(), max_size=2).map(tuple),
    st.lists(requirements(("In", "NotIn")), max_size=1).map(tuple),
)
tolerations = st.one_of(
    st.builds(Toleration, words, st.sampled_from(["Equal", "Exists"]), st.sampled_from(["", "x"]),
              st.sampled_from(["", "NoSchedule", "NoExecute"])),
    st.just(Toleration("", "Exists")),
)  # fmt: skip
spreads = st.builds(
    Spread,
    selectors.map(lambda selector: PodSelector(selector.requirements, own_namespaces)),
    words, st.integers(1, 5), st.integers(1, 5), st.booleans(), st.booleans(),
)  # fmt: skip
host_ports = st.builds(
    HostPort, st.integers(1, 65535), st.sampled_from(["TCP", "UDP"]), st.sampled_from(["", "::1"])
)


def _tuples(strategy):
    return st.lists(strategy, max_size=3, unique=True).map(tuple)


volume_rules = st.one_of(
    words.map(VolumeRule),
    st.builds(
        VolumeRule,
        words,
        st.lists(st.none() | _tuples(node_terms), min_size=3, max_size=3).map(tuple),
        st.sampled_from([((0,),), ((2, 1), (0, 1)), ((), (1,))]),
    ),
)


constraints = st.builds(
    Constraints,
    st.dictionaries(words, words, max_size=2).map(lambda found: tuple(sorted(found.items()))),
    st.none() | _tuples(node_terms),
    _tuples(tolerations),
    _tuples(st.builds(PodTerm, selectors, words)),
    _tuples(st.builds(PodTerm, selectors, words)),
    _tuples(spreads),
    _tuples(host_ports),
    volumes=_tuples(volume_rules),
    sole_claims=_tuples(words),
)
