import pytest

pytest.importorskip("pydantic")

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from podium.service.http.route import refusal


class Job(BaseModel):
    model_config = ConfigDict(extra="forbid")
    gpu_type: str = ""
    candidate_gpu_types: list[str] = []


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gpu_types", "candidate_gpu_types"),
        ("gpu_typ", "gpu_type"),
        ("candidate_gpu_type", "candidate_gpu_types"),
    ],
)
def test_an_unknown_field_leads_to_the_one_that_is_meant(name, meant):
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(Job).validate_python({name: []})
    assert refusal(caught.value, list(Job.model_fields)).hint == f"did you mean {meant}"
