import asyncio
import threading

import pytest

from podium.policies.thread import PolicyThread, in_thread

LONG_S = 30.0


def test_calls_run_one_after_another_in_one_thread():
    thread, idents = PolicyThread("p"), set()
    for number in range(3):
        thread.begin(lambda given=number: (given, idents.add(threading.get_ident())))
        assert thread.has_ended(LONG_S)
        assert thread.result()[0] == number
    thread.leave()
    assert len(idents) == 1
    assert threading.get_ident() not in idents


def test_what_a_call_raises_is_raised_to_whoever_waits():
    thread = PolicyThread("p")
    thread.begin(lambda: 1 // 0)
    assert thread.has_ended(LONG_S)
    with pytest.raises(ZeroDivisionError):
        thread.result()
    thread.leave()


def test_whoever_waits_may_go_on_without_the_end():
    thread, may_end = PolicyThread("p"), threading.Event()
    thread.begin(may_end.wait)
    assert not thread.has_ended(0.01)
    assert not thread.has_ended()
    may_end.set()
    assert thread.has_ended(LONG_S)
    thread.begin(lambda: "next")
    assert thread.has_ended(LONG_S)
    assert thread.result() == "next"
    thread.leave()


def test_a_thread_that_is_left_ends_in_plain_python():
    thread, has_begun = PolicyThread("p"), threading.Event()

    def endless():
        has_begun.set()
        while True:
            pass

    thread.begin(endless)
    assert has_begun.wait(LONG_S)
    thread.leave()
    thread._thread.join(LONG_S)
    assert not thread.is_alive


def test_a_thread_without_work_ends_once_it_is_left():
    thread = PolicyThread("p")
    thread.leave()
    thread._thread.join(LONG_S)
    assert not thread.is_alive


def test_something_runs_beside_the_loop():
    async def asked():
        idents = await in_thread(threading.get_ident), threading.get_ident()
        with pytest.raises(ZeroDivisionError):
            await in_thread(lambda: 1 // 0)
        return idents

    one, other = asyncio.run(asked())
    assert one != other


def test_a_loop_ends_before_what_runs_beside_it():
    may_end = threading.Event()

    async def impatient():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(in_thread(may_end.wait), 0.01)

    asyncio.run(impatient())
    may_end.set()
