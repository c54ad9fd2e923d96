import asyncio
import threading
from concurrent.futures import Future

import pytest

from podium.service.learning.arrivals import Arrivals, TooLate


def test_promises_that_are_kept_together_wake_the_loop_once(monkeypatch):
    async def waited():
        loop, arrivals, calls = asyncio.get_running_loop(), Arrivals(), []
        promised = [Future() for _ in range(5)]
        waiting = [asyncio.ensure_future(arrivals.of(each, 60.0)) for each in promised]
        await asyncio.sleep(0)
        call = loop.call_soon_threadsafe

        def counted(*args, **kwargs):
            calls.append(args)
            return call(*args, **kwargs)

        monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
        for number, each in enumerate(promised):
            each.set_result(number)
        return await asyncio.gather(*waiting), len(calls)

    assert asyncio.run(waited()) == ([0, 1, 2, 3, 4], 1)


def test_many_threads_lose_no_promise():
    async def waited():
        arrivals = Arrivals()
        promised = [Future() for _ in range(400)]
        threads = [
            threading.Thread(target=lambda own=own: [each.set_result(1) for each in own])
            for own in (promised[at::4] for at in range(4))
        ]
        waiting = [asyncio.ensure_future(arrivals.of(each, 60.0)) for each in promised]
        await asyncio.sleep(0)
        for each in threads:
            each.start()
        return sum(await asyncio.gather(*waiting))

    assert asyncio.run(waited()) == 400


def test_a_promise_that_is_late_or_broken_is_told():
    async def waited(promised):
        return await Arrivals().of(promised, 0.01)

    with pytest.raises(TooLate):
        asyncio.run(waited(late := Future()))
    assert not late.cancelled()
    broken = Future()
    broken.set_exception(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        asyncio.run(waited(broken))


def test_a_loop_that_ended_keeps_no_other_from_being_called():
    arrivals, kept = Arrivals(), Future()
    kept.set_result(1)

    async def left():
        waiting = asyncio.ensure_future(arrivals.of(kept, 60.0))
        await asyncio.sleep(0)
        waiting.cancel()

    asyncio.run(left())
    arrivals._is_called = True  # it ended before it came
    assert asyncio.run(arrivals.of(kept, 60.0)) == 1
