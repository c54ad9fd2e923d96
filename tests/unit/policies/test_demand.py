"""The window of recent pods: who is in it, and when a table is due."""

import numpy as np

from podium.model.records import ANY_MODEL, POD
from podium.policies.demand import WINDOW_PODS, RecentPods
from podium.settings import Extender


def pod(cpu_milli=1000):
    record = np.zeros(1, POD)
    record["cpu_milli"] = cpu_milli
    return record[0]


def window_of(*cpu, most=WINDOW_PODS):
    window = RecentPods(most)
    for number, cpu_milli in enumerate(cpu):
        window.add(number, pod(cpu_milli), "")
    return window


def test_a_live_service_remembers_as_many_pods_as_a_simulation():
    assert Extender().window_pods == WINDOW_PODS


def test_pods_are_counted_by_what_they_ask_for():
    window = window_of(100, 200, 100)
    window.add("x", pod(100), "A100|T4")
    shapes = window.shapes(("T4", "V100", "A100"))
    assert shapes.pods["cpu_milli"].tolist() == [100, 200, 100]
    assert shapes.weights.tolist() == [2, 1, 1]
    assert shapes.gpu_specs == ("", "", "A100|T4")
    assert shapes.pods["gpu_models"].tolist() == [ANY_MODEL, ANY_MODEL, 0b101]


def test_no_pods_have_no_shapes():
    assert len(RecentPods(5).shapes()) == 0


def test_a_pod_that_comes_again_counts_once_and_keeps_its_place():
    window = window_of(100, 200, 300, most=3)
    window.add(0, pod(100), "")
    assert len(window) == 3
    window.add(3, pod(400), "")
    assert window.shapes().pods["cpu_milli"].tolist() == [200, 300, 400]


def test_who_left_the_window_may_come_again():
    window = window_of(100, 200, 300, most=2)
    window.shapes()
    assert 0 not in window
    window.add(0, pod(100), "")
    assert window.shapes().pods["cpu_milli"].tolist() == [300, 100]


def test_the_window_is_bounded_where_no_table_is_ever_prepared():
    window = window_of(*range(100), most=16)
    assert len(list(window)) == 18
    assert len(window) == 16


def test_a_table_is_due_once_an_eighth_of_the_window_is_new():
    window, due = RecentPods(100), []
    for number in range(200):
        window.add(number, pod(), "")
        if window.is_due:
            due.append(number + 1)
            window.shapes()
    assert due[:18] == [*range(1, 16), 17, 19, 21]
    assert set(np.diff(due[-5:])) == {12}


def test_how_many_pods_are_lacking_is_known_before():
    window = RecentPods(40)
    for number in range(90):
        lacking = window.lacking
        window.add(number, pod(), "")
        assert window.is_due == (lacking <= 1)
        if window.is_due:
            window.shapes()
