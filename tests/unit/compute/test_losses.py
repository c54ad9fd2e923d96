from podium.compute.losses import MOST_LOST, REPLIES, Losses


def losses_of(replies, workers=1):
    """Counts the losses that are borne, with so many replies after each; at most a thousand."""
    losses = Losses(workers)
    for count in range(1000):
        if losses.add():
            return count
        for _ in range(replies):
            losses.make_up()
    return 1000


def test_losses_without_replies_are_borne_up_to_a_number_for_each_worker():
    assert losses_of(0) == MOST_LOST - 1
    assert losses_of(0, 50) == 199


def test_losses_that_come_with_nearly_every_reply_are_noticed():
    assert losses_of(1) < 2 * MOST_LOST
    assert losses_of(REPLIES - 1) < 1000


def test_losses_now_and_then_are_borne_for_ever():
    assert losses_of(REPLIES) == 1000


def test_that_all_workers_go_at_once_now_and_then_is_borne():
    losses = Losses(12)
    for _ in range(4):
        assert not any(losses.add() for _ in range(12))
        for _ in range(10):
            losses.make_up()
