"""The examples are as short as promised, and the page about them shows them as they are."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel
from ray.autoscaler._private import util

from fedhh import plugins

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "examples" / "fedhh-extras"
MOST_LINES = {"oracles": 30, "protocols": 120, "populations": 30}
LARGER = "modular_subset_selection"
"""An oracle that the page names, and does not show."""
POINTS = [
    (kind, place)
    for kind in MOST_LINES
    for place in tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]["entry-points"]
    .get(f"fedhh.{kind}", {})
    .values()
]


@pytest.mark.usefixtures("own_modules")
@pytest.mark.parametrize(("kind", "place"), POINTS)
def test_an_example_is_short_and_found_and_shown_in_the_docs(kind, place):
    path = PACKAGE / f"{place.split(':')[0].replace('.', '/')}.py"
    text = path.read_text()
    assert plugins.find(kind, place, {}).__name__ == place.split(":")[1]
    assert is_shown(path)
    assert path.stem == LARGER or len(text.splitlines()) <= MOST_LINES[kind]


def is_shown(path: Path) -> bool:
    """Whether the page holds a file, or includes it; of the larger oracle, whether it names it."""
    page = (ROOT / "docs" / "extending.md").read_text()
    if path.stem.removeprefix("test_") == LARGER:
        return f"{path.parent.name}/{path.name}" in page
    return path.read_text() in page or f"{{literalinclude}} ../{path.relative_to(ROOT)}" in page


def test_the_tests_of_the_examples_are_shown_as_they_are():
    for path in sorted((PACKAGE / "tests").glob("test_*.py")):
        assert is_shown(path), path.name


CLUSTER = ROOT / "examples" / "cluster"


def test_rays_launcher_accepts_the_cluster_of_own_machines():
    config = yaml.safe_load((CLUSTER / "ray-cluster.yaml").read_text())
    util.validate_config(util.prepare_config(dict(config)))
    with pytest.raises(Exception, match="'nonsense' was unexpected"):
        util.validate_config(util.prepare_config({**config, "nonsense": 1}))
    started = [*config["head_start_ray_commands"], *config["worker_start_ray_commands"]]
    # Whoever reaches the ports could run code.
    assert all("RAY_AUTH_MODE=token" in line for line in started if "ray start" in line)


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)


class HeadGroup(Strict):
    ray_start_params: dict[str, str]
    template: dict[str, Any]


class WorkerGroup(HeadGroup):
    group_name: str
    replicas: int
    min_replicas: int
    max_replicas: int
    num_of_hosts: int = 1


class RayClusterSpec(Strict):
    ray_version: str
    head_group_spec: HeadGroup
    worker_group_specs: list[WorkerGroup]


class RayJobSpec(Strict):
    """What the job uses of KubeRay's types (ray-operator/apis/ray/v1), but for pods' templates."""

    entrypoint: str
    shutdown_after_job_finishes: bool
    ttl_seconds_after_finished: int
    ray_cluster_spec: RayClusterSpec


def test_the_job_has_the_fields_of_kuberays_types():
    spec = yaml.safe_load((CLUSTER / "kuberay-job.yaml").read_text())["spec"]
    RayJobSpec.model_validate(spec)
    with pytest.raises(ValidationError, match="Extra inputs"):
        RayJobSpec.model_validate({**spec, "ttlSecondsAfterFinish": 1})
    # Numbers of these have to be quoted.
    spec["rayClusterSpec"]["headGroupSpec"]["rayStartParams"]["num-cpus"] = 0
    with pytest.raises(ValidationError, match="valid string"):
        RayJobSpec.model_validate(spec)


def test_the_job_of_kuberay_has_one_image_and_workers_of_one_size():
    job = yaml.safe_load((CLUSTER / "kuberay-job.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    cluster = job["spec"]["rayClusterSpec"]
    (workers,) = cluster["workerGroupSpecs"]
    containers = [
        group["template"]["spec"]["containers"] for group in (cluster["headGroupSpec"], workers)
    ]
    assert len({each["image"] for (each,) in containers}) == 1
    assert workers["minReplicas"] == workers["replicas"] == workers["maxReplicas"]
    # Clients answer on workers alone.
    assert cluster["headGroupSpec"]["rayStartParams"] == {"num-cpus": "0"}
    assert job["spec"]["entrypoint"].startswith("fedhh run --data s3://")
