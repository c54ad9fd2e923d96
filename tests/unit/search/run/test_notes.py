from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from podium.search.generators.generator import Proposal
from podium.search.generators.llm.prompt import PromptWriter
from podium.search.run.notes import EVERY, RunNotes
from podium.search.run.progress import Validated
from podium.store import CandidateRecord
from support.searches import PLAN_OF_TESTS, Sittings
from support.stored import judged

SEED = judged(CandidateRecord("run-a", 0, kind="seed", text="x"), 90.0)


def child(number, gain, thought="an idea", **changes):
    """Is a candidate of the seed that was so much better."""
    record = CandidateRecord(
        "run-a", number, 1, parents=(0,), prompt="p", thought=thought, text="x",
        operators=("modify",),
    )  # fmt: skip
    return judged(replace(record, **changes), 90.0 + gain)


def refusal(number, gate, reason, **changes):
    """Is a candidate that a gate refused."""
    return replace(child(number, 0.0), accepted=False, fitness=None, gate=gate, reason=reason,
                   **changes)  # fmt: skip


def notes_of(*batches):
    """Takes batches in, and empty ones until the notes are written."""
    memory = RunNotes()
    for batch in ([SEED], *batches):
        memory.end_batch(batch)
    while memory._batches % EVERY:
        memory.end_batch([])
    return memory.text


def test_what_helped_and_what_was_worse_is_told_by_size():
    rows = [child(i, gain, f"idea {i}") for i, gain in enumerate([0.5, -0.25, 2.0, -3.0], 1)]
    assert notes_of(rows).splitlines() == [
        "Better than the best parent, by points of fitness:",
        "- +2.00 (modify): idea 3",
        "- +0.50 (modify): idea 1",
        "Tried, and worse than the best parent:",
        "- -3.00 (modify): idea 4",
        "- -0.25 (modify): idea 2",
    ]


def test_the_best_parent_is_what_a_child_is_measured_by():
    rows = [child(1, 1.0, "first"), replace(child(2, 1.5, "second"), batch=2, parents=(0, 1))]
    assert "- +0.50 (modify): second" in notes_of(rows[:1], rows[1:])


def test_refusals_are_counted_without_their_places():
    rows = [
        refusal(1, "allow-list", "line 3: no such field: pod.name"),
        refusal(2, "allow-list", "line 12, column 4: no such field: pod.name"),
        refusal(3, "contract", "the score is NaN: for Pod(cpu_milli=1) on Node(...), gpu 0"),
        refusal(4, "race", "trails the incumbent after 1 case: fitness 3 against 4"),
    ]
    assert notes_of(rows).splitlines() == [
        "Refused most often:",
        "- 2 x allow-list: no such field: pod.name",
        "- 1 x contract: the score is NaN",
        "- 1 x race: it is clearly worse than the best so far",
    ]


def test_only_authors_of_prompts_have_a_say():
    rows = [child(1, 1.0, prompt=""), refusal(2, "race", "trails", prompt="")]
    assert notes_of(rows) == ""


def test_tuned_twins_silent_ideas_and_missing_answers_are_no_lessons():
    rows = [
        child(1, 1.0, kind="tuned"), child(2, 1.0, thought=" "), child(3, 0.001),
        child(4, 1.0, parents=(77,)), refusal(5, "syntax", "the service is down", text=""),
    ]  # fmt: skip
    assert notes_of(rows) == ""


def test_an_idea_is_told_once():
    rows = [child(1, 0.5, "Pack."), child(2, 0.7, "pack."), child(3, 0.6, "Pack.")]
    assert notes_of(rows).count("ack.") == 1
    assert "+0.70" in notes_of(rows)


def test_notes_stay_alike_between_refreshes():
    memory = RunNotes()
    seen = []
    for batch in range(2 * EVERY):
        memory.end_batch([SEED] if batch == 0 else [child(batch, batch / 10, f"idea {batch}")])
        seen.append(memory.text)
    assert seen[: EVERY - 1] == [""] * (EVERY - 1)
    assert len(set(seen[EVERY - 1 : -1])) == 1
    assert seen[-1] != seen[-2]


_ROWS = st.lists(
    st.builds(
        child, st.just(1), st.floats(-5, 5), st.text(max_size=400),
        text=st.sampled_from(["", "x"]), accepted=st.booleans(),
        gate=st.sampled_from(["syntax", "race", "contract"]), reason=st.text(max_size=400),
    ),
    max_size=40,
)  # fmt: skip


@given(_ROWS, st.randoms())
def test_notes_are_short_and_do_not_depend_on_the_order_of_rows(rows, random):
    rows = [replace(row, number=i) for i, row in enumerate(rows, 1)]
    told = notes_of(rows)
    assert len(told.splitlines()) <= 12
    assert all(len(line) < 260 for line in told.splitlines())
    mixed = list(rows)
    random.shuffle(mixed)
    assert notes_of(mixed) == told


def test_notes_stand_in_prompts_and_are_the_same_after_a_break(executor, tmp_path):
    def sittings(path, breaks):
        generator = _Author()
        plan = replace(
            PLAN_OF_TESTS, generators=(("command", 1.0),), batch=3,
            tuning=replace(PLAN_OF_TESTS.tuning, every=0),
        )  # fmt: skip
        path.mkdir()
        run = Sittings(path, executor, plan, lambda: {"command": generator}, validate=_told)
        for batches in breaks:
            search = run.go(batches)
        return generator, search, run

    author, search, run = sittings(tmp_path / "whole", [EVERY + 2])
    assert search.history.notes.text
    asked = [request for request in author.asked if request.notes]
    assert {request.notes for request in asked} == {search.history.notes.text}
    assert search.history.notes.text in PromptWriter().write(asked[0]).user
    again, resumed, other = sittings(tmp_path / "parts", [1, 2, EVERY, EVERY + 1, EVERY + 2])
    assert resumed.history.notes == search.history.notes
    assert other.rows() == run.rows()
    prompts = [PromptWriter().write(request).text for request in author.asked + again.asked]
    assert not any("77.125" in text or "66.25" in text for text in prompts)


def test_a_run_that_nobody_reads_about_keeps_no_memory(executor, tmp_path):
    assert Sittings(tmp_path, executor).search().history.notes is None


def _told(number, _text):
    return Validated(number, 77.125, 66.25)


class _Author:
    """Writes a program with a thought, and now and then one that is refused."""

    name, can_repair = "command", False

    def __init__(self):
        self.asked = []

    def propose(self, request):
        self.asked.append(request)
        number = request.seed[1]
        field = "name" if number % 3 == 0 else "cpu_milli"
        text = f"def score(pod, node):\n    return pod.{field} - node.cpu_milli_left % {number}\n"
        prompt = PromptWriter().write(request).text
        return Proposal(text, self.name, f"thought {number}", prompt, operators=("modify",))

    def learn(self, source, gain, cost):
        pass

    def state(self):
        return {}

    def restore(self, state):
        pass

    def close(self):
        pass
