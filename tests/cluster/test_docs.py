"""What the pages show of a live cluster is what happens to a reader who has one."""

import os
import sys
from pathlib import Path

import pytest

from support.binary import clean_environment
from support.console import read_blocks, run_page
from support.kubelike import gpu_node, gpu_pod
from support.manifests import bound
from support.pages import PAGES

LANGUAGE = "console cluster"


@pytest.fixture
def small_cluster(api):
    """Makes three nodes of four GPUs, twelve pods that run and three that wait."""
    api.create_all([gpu_node(f"n{i}") for i in range(3)])
    api.create_all([bound(gpu_pod(f"runs-{i}", i % 3), f"n{i % 3}") for i in range(12)])
    api.create_all([gpu_pod(f"waits-{i}", 2) for i in range(3)])


def pages():
    for page in PAGES:
        blocks = read_blocks(page.read_text(encoding="utf-8"))
        if any(block.info == LANGUAGE for block in blocks):
            yield pytest.param(page, id=page.stem)


@pytest.mark.usefixtures("small_cluster")
@pytest.mark.parametrize("page", [*pages()])
def test_consoles_print_what_the_page_shows(plane, page, tmp_path):
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = clean_environment(
        tmp_path, PATH=programs, COLUMNS="80", KUBECONFIG=str(plane.kubeconfig)
    )
    problems = run_page(page, tmp_path, environment, LANGUAGE)
    assert not problems, "\n\n".join(problems)
