"""Declares what callers may send; the same declarations check bodies and document them."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Discriminator, FailFast, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from podium.online.observation import LONGEST_S, SHORTEST_S
from podium.online.parameters import FEATURES
from podium.store import FAILED, SUCCEEDED, TIMED_OUT

LONGEST_NAME = 256
MOST_FEATURES = 64
MOST_COLUMNS = 64
"""Most columns of one assignment; clusters have fewer GPU types."""

LARGEST_SIZE = 1e15
DEAREST = 1e15
BY_COSTS, BY_JOBS = "by-costs", "by-jobs"

# Names go into logs, labels of metrics and fields of pods: control characters are mistakes there.
_PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$"
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME, pattern=_PRINTABLE)]
Word = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Size = Annotated[float, Field(ge=0, le=LARGEST_SIZE, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=SHORTEST_S, le=LONGEST_S, allow_inf_nan=False)]
Cost = Annotated[float, Field(ge=-DEAREST, le=DEAREST, allow_inf_nan=False)] | None
Span = Annotated[float, Field(ge=0, le=LONGEST_S, allow_inf_nan=False)]
Weight = Annotated[float, Field(gt=0, le=LARGEST_SIZE, allow_inf_nan=False)]
Capacity = Annotated[int, Field(ge=0, le=2**31)]


def _document_sizes(schema: dict[str, Any]) -> None:
    size = {"type": ["number", "null"], "minimum": 0, "maximum": LARGEST_SIZE}
    schema["properties"] = dict.fromkeys(FEATURES, size)


Features = Annotated[
    dict[Word, Size | bool | Annotated[str, Field(max_length=LONGEST_NAME)] | None],
    Field(
        max_length=MOST_FEATURES,
        description="Facts about the job. Sizes that the service is set to learn from are used, "
        "others are listed in `ignored_features`. One that is null or left out is unknown, which "
        "is not 0.",
        json_schema_extra=_document_sizes,
    ),
]
# The first mistake in a list is enough: whoever sends a million must not have them all described.
Names = Annotated[list[Name], FailFast()]
Costs = Annotated[list[Cost], Field(max_length=MOST_COLUMNS), FailFast()]
Capacities = Annotated[list[Capacity], FailFast()]
WithPlan = Annotated[bool, Field(description="Whether to answer with the transport plan as well.")]


class Body(BaseModel):
    """Refuses unknown fields, and values of another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class PlaceBody(Body):
    """A GPU type, or a node with it, and who runs there already."""

    gpu_type: Name
    node: Annotated[
        str,
        Field(
            max_length=LONGEST_NAME,
            pattern=_PRINTABLE,
            description="Comes back as `chosen_node`.",
        ),
    ] = ""
    colocated_job_types: Annotated[
        Names, Field(description="Job types that the job would run beside there.")
    ] = []


def _without_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


def _at_least_one(schema: dict[str, Any]) -> None:
    _without_default(schema)
    schema["minItems"] = 1


class ScoreRequest(Body):
    """A job that needs a place: one of some GPU types, or one of some places with neighbours."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["candidate_gpu_types"], "not": {"required": ["places"]}},
                {
                    "required": ["places"],
                    "not": {"required": ["candidate_gpu_types"]},
                    "properties": {"colocated_job_types": {"maxItems": 0}},
                },
            ]
        }
    )

    job_type: Name
    candidate_gpu_types: Annotated[
        Names,
        Field(description="GPU types that have room for the job.", json_schema_extra=_at_least_one),
    ] = []
    # Lists that are seldom sent are made by a factory: a default is copied for each request.
    places: Annotated[
        list[PlaceBody],
        FailFast(),
        Field(
            default_factory=list,
            description="Where there is room for the job, if neighbours differ from place to "
            "place: instead of `candidate_gpu_types` and `colocated_job_types`.",
            json_schema_extra=_at_least_one,
        ),
    ]
    features: Features = {}
    colocated_job_types: Annotated[
        Names,
        Field(description="Job types that the job would run beside, on whichever GPU type."),
    ] = []
    job_id: Annotated[
        str,
        Field(
            max_length=LONGEST_NAME,
            description="Id of the job. From now on it counts as running there, until an "
            "observation with this id arrives.",
        ),
    ] = ""
    waited_s: Annotated[
        Span, Field(description="Seconds that the job has waited, for `priority_score`.")
    ] = 0.0
    weight: Annotated[
        Weight,
        Field(description="What a second of this job's waiting costs, for `priority_score`."),
    ] = 1.0

    @model_validator(mode="after")
    def _has_one_kind_of_candidates(self) -> Self:
        named = self.model_fields_set
        if ("candidate_gpu_types" in named) == ("places" in named):
            raise PydanticCustomError("candidates", "send either candidate_gpu_types or places")
        if self.places and self.colocated_job_types:
            raise PydanticCustomError(
                "neighbours", "send colocated_job_types with each of the places"
            )
        return self


class ObserveRequest(Body):
    """How long a job ran until it ended: `measured_runtime_s`, or `actual_runtime`, the same."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": ["measured_runtime_s"]}, {"required": ["actual_runtime"]}]
        }
    )

    job_type: Name
    gpu_type: Name
    measured_runtime_s: Annotated[Seconds, Field(json_schema_extra=_without_default)] = 0.0
    actual_runtime: Annotated[Seconds, Field(json_schema_extra=_without_default)] = 0.0
    colocated_job_types: Annotated[
        Names, Field(description="Job types that the job ran beside.")
    ] = []
    features: Features = {}
    job_id: Annotated[
        str,
        Field(
            max_length=LONGEST_NAME,
            description="Id of the job; further observations of it count once, and it no "
            "longer counts as running.",
        ),
    ] = ""
    success: Annotated[
        bool,
        Field(
            description="Whether the job did its work. If not, it teaches how often this happens "
            "to the pair and how much time is lost, and nothing about run times."
        ),
    ] = True
    timed_out: Annotated[
        bool, Field(description="Whether it was stopped because it took too long; it failed then.")
    ] = False

    @model_validator(mode="after")
    def _has_one_run_time(self) -> Self:
        if (self.measured_runtime_s > 0) == (self.actual_runtime > 0):
            raise PydanticCustomError(
                "run_time", "send either measured_runtime_s or actual_runtime"
            )
        return self

    @model_validator(mode="after")
    def _ended_in_one_way(self) -> Self:
        if self.timed_out and self.success and "success" in self.model_fields_set:
            raise PydanticCustomError(
                "outcome", "a run that timed out did not succeed: send one of the two"
            )
        return self

    @property
    def runtime_s(self) -> float:
        """Returns the run time, whichever field holds it."""
        return self.measured_runtime_s or self.actual_runtime

    @property
    def outcome(self) -> str:
        """Returns how the job ended, as the store names it."""
        if self.timed_out:
            return TIMED_OUT
        return SUCCEEDED if self.success else FAILED


class ForgetRequest(Body):
    """Names job types and GPU types that nobody uses any more, or that were mistakes."""

    job_types: Names = []
    gpu_types: Names = []


class Job(Body):
    """Describes one job of a batch."""

    job_type: Name
    candidate_gpu_types: Annotated[
        Names,
        Field(description="GPU types that the job may use; all of them if the list is empty."),
    ] = []
    features: Features = {}
    colocated_job_types: Names = []


class CostsRequest(Body):
    """Asks for the cheapest assignment of rows to columns with capacities."""

    costs: Annotated[
        list[Costs],
        FailFast(),
        Field(description="One row per job, all of equal length; null where it may not go."),
    ]
    capacities: Annotated[Capacities, Field(description="Capacity of each column.")]
    plan: WithPlan = False


class JobsRequest(Body):
    """Asks for the cheapest assignment of jobs to GPU types, by what was learned."""

    jobs: Annotated[list[Job], FailFast()]
    gpu_types: Annotated[Names, Field(json_schema_extra={"minItems": 1, "uniqueItems": True})]
    capacities: Annotated[Capacities, Field(description="Capacity of each GPU type.")]
    plan: WithPlan = False


def _kind(value: Any) -> str:
    return BY_JOBS if isinstance(value, dict) and "jobs" in value else BY_COSTS


AssignRequest = Annotated[
    Annotated[CostsRequest, Tag(BY_COSTS)] | Annotated[JobsRequest, Tag(BY_JOBS)],
    Discriminator(_kind),
]

EXAMPLES: dict[str, dict[str, Any]] = {
    "/v1/score": {
        "a job": {
            "job_type": "train-bert",
            "features": {"gpu_mem_gb": 40, "batch_size": 16},
            "candidate_gpu_types": ["A100-80GB", "L4-24GB"],
            "colocated_job_types": [],
        },
        "a job beside others": {
            "job_type": "train-bert",
            "job_id": "train-bert-7",
            "places": [
                {"gpu_type": "A100-80GB", "node": "a1", "colocated_job_types": ["serve-llm"]},
                {"gpu_type": "L4-24GB", "node": "l1"},
            ],
        },
    },
    "/v1/observe": {
        "a run": {"job_type": "train-bert", "gpu_type": "A100-80GB", "measured_runtime_s": 73.4},
        "a failure": {
            "job_type": "train-bert",
            "gpu_type": "L4-24GB",
            "job_id": "train-bert-7",
            "measured_runtime_s": 12.5,
            "success": False,
        },
    },
    "/v1/forget": {"a mistake": {"gpu_types": ["A10O-80GB"]}},
    "/v1/assign": {
        "by costs": {"costs": [[10, 100], [10, 12], [None, 20]], "capacities": [1, 2]},
        "by what was learned": {
            "jobs": [{"job_type": "train-bert"}],
            "gpu_types": ["A100-80GB", "L4-24GB"],
            "capacities": [4, 8],
        },
    },
}
"""Example bodies, by path and title."""
