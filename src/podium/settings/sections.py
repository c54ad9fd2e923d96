"""Declares every setting: one frozen dataclass per section and one line each in `Settings`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from podium.settings.about import about, cache_folder, data, data_file_url, data_folder
from podium.settings.extender import Extender
from podium.settings.folder import inside, names
from podium.settings.serve import Serve


@dataclass(frozen=True, slots=True)
class Traces:
    """Where traces are."""

    folder: Path | None = field(
        default=None,
        metadata=about(
            "folder of the OpenB CSV files",
            short_env="PODIUM_TRACES",
            flag="--traces",
            from_folder=inside,
        ),
    )
    cache: Path = field(
        default_factory=cache_folder("traces"), metadata=about("folder for downloaded traces")
    )


@dataclass(frozen=True, slots=True)
class Simulate:
    """What is simulated, where no flag says otherwise."""

    policy: str = field(default="fgd", metadata=about("policy by name or file", from_folder=names))
    trace: str = field(default="openb", metadata=about("trace by name or file", from_folder=inside))
    cluster: str | None = field(
        default=None,
        metadata=about("cluster by name or file; unset: the trace's own", from_folder=inside),
    )
    protocol: str = field(
        default="replay",
        metadata=data("how pods are offered", choices=("replay", "inflation", "rounds")),
    )
    seed: int = field(default=0, metadata=data("random seed", at_least=0))
    load: float = field(
        default=1.0, metadata=data("divides the time between arrivals (replay)", above=0)
    )
    ratio: float = field(
        default=1.3, metadata=data("arrived GPU demand over capacity (inflation)", above=0)
    )
    hold_limit: int = field(
        default=100, metadata=data("decisions until a held pod is offered again", at_least=1)
    )
    max_holds: int = field(default=1000, metadata=data("how often one pod may be held", at_least=0))
    max_rounds: int = field(
        default=10, metadata=data("number of times the queue is offered (rounds)", at_least=1)
    )
    preemption: bool = field(
        default=False,
        metadata=data("pods that fit nowhere evict pods of lower priority (replay, rounds)"),
    )
    demand: str | None = field(
        default=None,
        metadata=data(
            "pods that a policy prepares its table from: all of the trace, those seen so far, or "
            "those after a day of such pods; unset: seen for a dump or a recording, else trace",
            choices=("trace", "seen", "warm"),
        ),
    )
    ties: str | None = field(
        default=None,
        metadata=data(
            "which of the nodes that score alike wins: the first in order, or the one that "
            "kube-scheduler takes with the profile of Podium's chart; unset: profile for a dump or "
            "a recording, else order",
            choices=("order", "profile"),
        ),
    )
    state: str | None = field(
        default=None,
        metadata=data(
            "how the dump of a cluster begins: with its pods where they run, empty with all of "
            "them to place, or empty with those that ran, too, each at its creation; unset: "
            "history where demand is drawn (inflation, search, training), else now where pods run",
            choices=("now", "empty", "history"),
        ),
    )
    duration: str | None = field(
        default=None,
        metadata=data(
            "run time of the pods of a dump: 2h, exponential:1h, lognormal:1h:1.5; "
            "unset: as finished pods ran"
        ),
    )
    topology: str | None = field(
        default=None,
        metadata=data(
            "labels of rack, block and zone in a dump: aws, gcp, oci, nvlink, topograph, "
            "kubernetes, or up to three keys; unset: all that are known"
        ),
    )


@dataclass(frozen=True, slots=True)
class Display:
    """How results are shown."""

    progress: bool = field(default=True, metadata=data("show progress bars", flag="--no-progress"))
    quiet: bool = field(default=False, metadata=data("print results only"))
    color: str = field(
        default="auto", metadata=data("when to use colour", choices=("auto", "always", "never"))
    )


@dataclass(frozen=True, slots=True)
class Compile:
    """How policies are compiled."""

    cache: Path = field(
        default_factory=cache_folder("compiled"), metadata=about("folder for compiled policies")
    )
    tier: str = field(
        default="auto",
        metadata=data(
            "execution tier of the simulator", choices=("auto", "python", "cached", "scan")
        ),
    )


@dataclass(frozen=True, slots=True)
class Store:
    """Where runs are stored."""

    url: str = field(
        default_factory=lambda: data_file_url("podium.db"),
        repr=False,
        metadata=about(
            "database of runs and observations: a SQLite file or a PostgreSQL URL",
            flag="--store",
            is_url=True,
        ),
    )


@dataclass(frozen=True, slots=True)
class Search:
    """How policies are searched for, where no flag says otherwise."""

    folder: Path = field(
        default_factory=data_folder("runs"), metadata=about("folder for the files of runs")
    )
    workers: int = field(
        default=0, metadata=data("worker processes for candidates; 0: one per core", at_least=0)
    )
    allow_unconfined: bool = field(
        default=False,
        metadata=about("evaluate candidates even if a wall of the sandbox is missing"),
    )
    models: str = field(
        default="",
        metadata=about("language models, the cheapest first, comma-separated", flag="--model"),
    )
    base_url: str = field(
        default="",
        repr=False,
        metadata=about("URL of an OpenAI-compatible service", flag="--base-url", is_url=True),
    )
    usd: float = field(
        default=0.0,
        metadata=about("spending limit of a run in US dollars; 0: no limit", at_least=0),
    )
    tokens: int = field(default=0, metadata=about("token limit of a run; 0: no limit", at_least=0))
    temperature: str = field(
        default="1.0",
        metadata=data(
            "temperature of language models; of several, comma-separated, one is drawn for each "
            "call; none: left to the service"
        ),
    )
    max_tokens: int = field(
        default=4096,
        metadata=data("longest answer of a language model, its thinking included", at_least=1),
    )
    reasoning_effort: str = field(
        default="",
        metadata=data("how much a language model thinks, as its service calls it: low, high"),
    )
    model_timeout_s: float = field(
        default=120.0,
        metadata=data(
            "seconds that a language model has to answer", above=0, flag="--model-timeout"
        ),
    )
    model_calls: int = field(
        default=8, metadata=data("calls of language models at a time", at_least=1)
    )
    model_parameters: str = field(
        default="",
        metadata=about(
            "further parameters of language models, a table in JSON or TOML, or the file of one"
        ),
    )
    prompts: Path | None = field(
        default=None,
        metadata=about("folder of prompt templates that replace Podium's own of the same name"),
    )


GPU_LABELS = {
    "nvidia": "nvidia.com/gpu.product",  # NVIDIA's GPU feature discovery, on any cluster
    "gke": "cloud.google.com/gke-accelerator",
    "karpenter": "karpenter.k8s.aws/instance-gpu-name",  # EKS
    "eks-auto": "eks.amazonaws.com/instance-gpu-name",  # EKS Auto Mode
    "aks": "karpenter.azure.com/sku-gpu-name",  # AKS with node auto-provisioning
    "amd": "amd.com/gpu.product-name",
}
"""Labels under which nodes name their GPU types, by who sets them."""


@dataclass(frozen=True, slots=True)
class Online:
    """How run times are learned, and how what is known is weighed against learning more."""

    lambda_uncertainty: float = field(
        default=0.3,
        metadata=data(
            "weight of uncertainty in the cost",
            at_least=0,
        ),
    )
    beta_exploration: float = field(
        default=0.7,
        metadata=data(
            "weight of information gain in the cost",
            at_least=0,
        ),
    )
    gamma_interference: float = field(
        default=1.0,
        metadata=data(
            "weight of the seconds that neighbours cost",
            at_least=0,
        ),
    )
    tau_squared: float = field(
        default=0.04,
        metadata=data(
            "relative variance of a run, at least, against which information is measured",
            above=0,
        ),
    )
    horizon: float = field(
        default=200.0,
        metadata=data("runs of a job type that benefit from what one run teaches", above=0),
    )
    exploration_cap: float = field(
        default=0.25,
        metadata=data(
            "largest share of exploratory decisions",
            at_least=0,
            at_most=1,
        ),
    )
    exploration_window: int = field(
        default=100,
        metadata=data("recent decisions over which the cap applies", at_least=1),
    )
    exploration_floor: float = field(
        default=0.005,
        metadata=data(
            "share of the time of all jobs for pairs that were never tried, within the cap",
            at_least=0,
            at_most=1,
        ),
    )
    in_flight_limit_s: float = field(
        default=86_400.0,
        metadata=data(
            "seconds after which a scored job that was never observed is no longer waited for",
            above=0,
        ),
    )
    enable_interference: bool = field(
        default=False,
        metadata=data(
            "let neighbours count in choices, and name those to avoid",
        ),
    )
    avoid_slowdown: float = field(
        default=0.1,
        metadata=data("slowdown from which neighbours are avoided; 0.1: 10 %", at_least=0),
    )
    avoid_probability: float = field(
        default=0.9,
        metadata=data(
            "how probable a slowdown above that must be for neighbours to be avoided",
            above=0,
            at_most=1,
        ),
    )
    forgetting: float = field(
        default=1.0,
        metadata=data(
            "weight that each observation leaves to older ones of its job type; 1: nothing fades",
            above=0,
            at_most=1,
        ),
    )
    features: str = field(
        default="gpu_mem_gb,model_params_m,batch_size",
        metadata=data("features of a job that may predict its run time, comma-separated"),
    )
    gpu_label: str = field(
        default="nvidia",
        metadata=data(
            "label of nodes that names their GPU type, for the selector in answers, or who sets "
            f"it: {', '.join(GPU_LABELS)}"
        ),
    )
    legacy_metrics: bool = field(
        default=False,
        metadata=data("also export metrics under the names of earlier agents, scheduler_…"),
    )
    prior_runtime_s: float = field(
        default=10.0, metadata=data("median run time expected before anything is known", above=0)
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """The value of every setting and where it came from."""

    traces: Traces
    simulate: Simulate
    display: Display
    compile: Compile
    store: Store
    search: Search
    online: Online
    serve: Serve
    extender: Extender
    origins: Mapping[str, str]  # by path, such as "simulate.seed"
