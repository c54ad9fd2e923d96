from podium.search.candidate.gates import Candidate, read_candidate
from podium.search.generators.generator import Exemplar, Request
from podium.search.generators.genetic.breeding import BreedingSettings
from podium.search.generators.genetic.crossover import CROSSOVERS
from podium.search.generators.genetic.generator import FROM_NOTHING, STAGNANT, GeneticGenerator
from podium.search.generators.genetic.growth import GROWTHS
from podium.search.generators.genetic.mutation import MUTATIONS
from podium.search.generators.genetic.seeds import seeds
from podium.search.program.ingredients import HERE, INGREDIENTS
from podium.search.program.program import complexity, terms
from podium.search.program.reader import parse
from podium.search.program.writer import write

PARENTS = tuple(
    Exemplar(number, write(program), 90.0) for number, program in enumerate(seeds().values())
)
DRAWN = ("random_program",)
HELPED = (
    "def worth(milli):\n    if milli < 300:\n        return 0\n    return milli\n\n\n"
    "def score(pod, node):\n    before = 0\n    for slot in range(node.gpu_count):\n"
    "        before += worth(node.gpu_milli_left[slot])\n"
    "    return -before / 1000 - pod.gpu_count * worth(pod.gpu_milli) / 1000\n"
)


def request(number, parents=PARENTS[:3], **others):
    return Request((7, number, 1), parents, **others)


def proposals(count, generator=None, **others):
    generator = generator or GeneticGenerator()
    return [generator.propose(request(number, **others)) for number in range(count)]


def test_the_same_request_is_answered_alike_and_another_one_otherwise():
    one, other = proposals(12), proposals(12)
    assert [each.text for each in one] == [each.text for each in other]
    assert len({each.text for each in one}) > 10


def test_every_proposal_is_a_candidate_and_names_what_was_done():
    for found in proposals(30):
        assert isinstance(read_candidate(found.text), Candidate), found.text
        assert found.operators
        assert (found.source, found.prompt, found.problem) == ("genetic", "", "")
        assert (found.cost.calls, found.cost.usd) == (0, None)


def test_without_parents_and_for_mere_drawing_programs_are_drawn():
    assert {each.operators for each in proposals(8, parents=())} == {DRAWN}
    drawing = GeneticGenerator(name="random", fresh=1.0)
    found = proposals(8, drawing)
    assert {each.operators for each in found} == {DRAWN}
    assert {each.source for each in found} == {"random"}


def test_fresh_blood_comes_where_an_island_stands_still():
    count = 300
    usually = sum(each.operators == DRAWN for each in proposals(count))
    standing = sum(each.operators == DRAWN for each in proposals(count, is_stagnant=True))
    assert usually < 0.01 * count + FROM_NOTHING * count
    assert STAGNANT / 2 * count < standing < 2 * STAGNANT * count


def test_parents_that_no_program_can_hold_are_passed_over():
    beyond = Exemplar(1, "def score(pod, node):\n    while 1 > 0:\n        return 1\n", 95.0)
    broken = Exemplar(2, "def score(", 95.0)
    assert {each.operators for each in proposals(8, parents=(beyond, broken))} == {DRAWN}
    alone = [each.text for each in proposals(8, parents=PARENTS[:1])]
    among = [each.text for each in proposals(8, parents=(beyond, PARENTS[0], broken))]
    assert alone == among


def test_parents_with_functions_of_their_own_are_bred_and_keep_them():
    person = Exemplar(1, HELPED, 95.0)
    found = proposals(20, parents=(person, *PARENTS[:2]))
    assert all(each.parents[:1] == (1,) for each in found if each.operators != DRAWN)
    kept = [each for each in found if "def worth(milli):" in each.text]
    assert len(kept) > 5
    for each in found:
        assert isinstance(read_candidate(each.text), Candidate), each.text


def test_a_proposal_names_the_parents_whose_material_it_has():
    crossovers = {each.__name__ for each in CROSSOVERS}
    for found in proposals(60):
        is_crossed = found.operators[0] in crossovers
        count = 0 if found.operators == DRAWN else 1 + is_crossed
        assert len(found.parents) == count
        assert found.parents[:1] in ((), (PARENTS[0].number,))
        assert found.operator == found.operators[0]
    assert {len(each.parents) for each in proposals(60)} >= {1, 2}
    assert proposals(1, parents=())[0].parents == ()


def test_operators_are_used_as_often_as_is_asked_for():
    names = {each.__name__ for each in (*MUTATIONS, *GROWTHS, *CROSSOVERS)}
    alone = {**dict.fromkeys(names, 0.0), "insert_term": 1.0}
    assert {each.operator for each in proposals(20, operator_weights=alone)} == {"insert_term"}
    usual = [each.text for each in proposals(20)]
    assert [each.text for each in proposals(20, operator_weights={"hoist": 1.0})] == usual


def test_without_ingredients_programs_are_made_of_fields_arithmetic_and_loops_alone():
    plain = GeneticGenerator(BreedingSettings(draws_ingredients=False))
    people = [Exemplar(n, each.text, 1.0) for n, each in enumerate(proposals(9, plain, parents=()))]
    texts = [each.text for each in proposals(60, plain, parents=tuple(people[:3]))]
    for text in (*texts, *(each.text for each in people)):
        assert isinstance(read_candidate(text), Candidate), text
        program = parse(text)
        assert {term.name for term in terms(program.block)} & INGREDIENTS.keys() <= {HERE}
        assert not program.functions
    assert any("for slot in range" in text for text in texts)


def test_programs_stay_as_small_as_is_asked_for():
    small = GeneticGenerator(BreedingSettings(largest=40))
    assert all(complexity(parse(each.text)) <= 40 for each in proposals(40, small))


def test_there_is_nothing_to_keep_between_runs():
    generator = GeneticGenerator()
    before = generator.propose(request(1)).text
    generator.restore(generator.state())
    assert (generator.state(), generator.propose(request(1)).text) == ({}, before)
