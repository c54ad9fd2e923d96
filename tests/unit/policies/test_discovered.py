import ast
import hashlib
import json
from pathlib import Path

import pytest

import podium.policies.discovered
from podium.evaluation.cases import Case
from podium.policies import load
from podium.sim.execution import execute

FOLDER = Path(podium.policies.discovered.__file__).parent
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
DIGESTS = {
    "fed_gpu": "c4204660b28b12f6f551f9283b1eaaac8eeab42a242852004dfd609049576a55",
    "patient_84": "fc9cac4b7386ebabfa2bdc53b1fae9130f21edbe688a4fdfe0882a62a0a46322",
    "patient_93": "87de1e97830ac81258ff03fa383ccc1b2346631b68bfafa3251491d40a8e28d7",
    "usable_gpu": "152e6f74335158fee117a5ac0b6915586333a0928690fc454862a661c26de149",
}
"""Of runs on 40 nodes: what the search found decides as it did, whatever is said about it."""


@pytest.mark.parametrize("name", NAMES)
def test_a_discovered_policy_decides_as_it_did_when_it_was_found(name):
    case = Case(nodes=40, pods=500, seed=1000)
    assert execute(case.plan(load(name.replace("_", "-")))).digest == DIGESTS[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_card_is_that_of_the_file_beside_it(name):
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    card = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert card["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    docstring = ast.get_docstring(ast.parse(text))
    assert docstring.startswith(card["summary"])
    for part in card["parts"]:
        assert part["code"].removeprefix("-") in " ".join(docstring.split())
