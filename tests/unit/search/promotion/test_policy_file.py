import pytest

from podium.policies import load, policy_of
from podium.policies.source import read_source
from podium.search.candidate.gates import Candidate, read_candidate
from podium.search.candidate.text import complexity_of
from podium.search.program.reader import parse_inlined
from podium.search.program.writer import write
from podium.search.promotion.policy_file import policy_text
from podium.search.promotion.reduction import Reduced
from support import bred

HEAD = "def score(pod, node):\n"


def as_it_is(text, program):
    size = complexity_of(text)
    return Reduced(text, 0.0, 0.0, size, size, 1, (), program)


def scores(text):
    policy = policy_of(read_source(text, "bred.py"), "bred")
    return [bred.score(policy, *view) for view in bred.views(60)]


def test_written_policies_score_as_the_programs_they_were_to_the_bit():
    for program in bred.brood(120)[2::8]:
        text = write(program)
        written = policy_text(as_it_is(text, program), "Doc.")
        assert scores(written) == scores(text), written
        assert isinstance(read_candidate(written), Candidate), written
        assert "tunable" not in written
        assert max(map(len, written.splitlines())) <= 100


@pytest.mark.parametrize(
    "name", ["balanced", "best-fit", "dot-product", "funsearch-4901", "gpu-packing", "fed-gpu"]
)
def test_built_in_policies_score_as_they_did_once_they_are_written_anew(name):
    text = load(name).source.text
    written = policy_text(as_it_is(text, parse_inlined(text)), "Doc.")
    assert scores(written) == scores(text), written


def test_a_tuned_constant_stays_a_decimal_number_and_says_what_it_means():
    text = (
        "from podium.policies import tunable\nCPUS_PER_GPU = tunable(10, 2, 60)\n"
        "W = tunable(4, 0, 8)\n" + HEAD + "    return W * pod.gang // CPUS_PER_GPU\n"
    )
    written = policy_text(as_it_is(text, parse_inlined(text)), "Doc.")
    note = "CPU milli that a pod usually takes with each GPU milli (tuned within 2 and 60)."
    assert f"# {note}\nCPUS_PER_GPU = 10.0\n" in written
    assert "# Tuned within 0 and 8.\nW = 4.0\n" in written


def test_ingredients_keep_their_notes_where_a_number_in_them_gets_a_name():
    text = (
        HEAD + "    is_share = 0 < pod.gpu_milli < 1000\n    return 1 if is_share else pod.gang\n"
    )
    written = policy_text(as_it_is(text, parse_inlined(text)), "Doc.")
    assert (
        "    # The pod takes a part of one GPU.\n    is_share = 0 < pod.gpu_milli < MILLI"
        in written
    )


def test_a_text_that_is_no_program_gets_another_docstring_and_loses_its_own_words():
    own = '    """Wins by 30 points."""\n'
    text = f'"""Old\n\ndoc."""\n\nA = (1, 2)  # pairs\n\n\n{HEAD}{own}    return A[0]  # first\n'
    written = policy_text(as_it_is(text, None), "New.\n\nDoc.")
    assert written == f'"""New.\n\nDoc.\n"""\n\nA = (1, 2)\n\n\n{HEAD}    return A[0]\n'


def test_loops_become_functions_and_the_terms_of_a_score_get_names():
    text = HEAD + (
        "    gpu_milli_free = 0\n    for slot in range(node.gpu_count):\n"
        "        gpu_milli_free += node.gpu_milli_left[slot]\n"
        "    return -int(4 * gpu_milli_free / 300) - 2 * node.cpu_milli_left\n"
    )
    written = policy_text(as_it_is(text, parse_inlined(text)), "Doc.")
    assert 'def sum_gpu_milli_free(node):\n    """Free GPU milli of the node."""\n' in written
    assert written.endswith(
        "    gpu_milli_free = sum_gpu_milli_free(node)\n"
        "    gpu_milli_free_steps = int(4 * gpu_milli_free / 300)\n"
        "    node_cpu_milli_left_score = 2 * node.cpu_milli_left\n"
        "    return -gpu_milli_free_steps - node_cpu_milli_left_score\n"
    )
    assert scores(written) == scores(text)


def test_a_loop_that_reads_the_pod_is_given_it():
    text = HEAD + (
        "    fitting = 0\n    for slot in range(node.gpu_count):\n"
        "        if node.gpu_milli_left[slot] >= pod.gpu_milli:\n            fitting += 1\n"
        "    return fitting\n"
    )
    written = policy_text(as_it_is(text, parse_inlined(text)), "Doc.")
    assert "fitting = sum_fitting(pod, node)" in written
    assert scores(written) == scores(text)
