import asyncio

from podium.service.http.body import FEW_BYTES, BodyReader
from podium.service.http.turns import Turns
from support.service import JSON, scope_of


class Rounds:
    """Counts the rounds of an event loop."""

    def __init__(self):
        self.count = 0
        self._count_on()

    def _count_on(self):
        self.count += 1
        asyncio.get_running_loop().call_soon(self._count_on)


async def noted(rounds, waiting):
    """Gives the rounds in which each went on."""

    async def one(each):
        await each
        return rounds.count

    return await asyncio.gather(*map(one, waiting))


def test_one_goes_on_in_each_round_and_in_order():
    async def run():
        turns = Turns()
        return await noted(Rounds(), [turns.take() for _ in range(5)])

    found = asyncio.run(run())
    assert found == sorted(set(found))


def test_who_gave_up_keeps_nobody_waiting():
    async def run():
        turns = Turns()
        first, second = (asyncio.create_task(turns.take()) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait_for(second, 30)
        return first.cancelled(), second.done()

    assert asyncio.run(run()) == (True, True)


def test_large_bodies_are_worked_on_by_turns_and_small_ones_at_once():
    def reads(size, count=4):
        reader = BodyReader(2**20, 5.0)

        async def receive():
            return {"type": "http.request", "body": b"x" * size, "more_body": False}

        async def run():
            scope = scope_of("POST", "/", JSON)
            waiting = [reader.read(scope, receive, reader.share()) for _ in range(count)]
            return await noted(Rounds(), waiting)

        return len(set(asyncio.run(run())))

    assert reads(FEW_BYTES + 1) == 4
    assert reads(FEW_BYTES) == 1
