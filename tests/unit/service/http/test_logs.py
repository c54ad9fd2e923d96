import io
import json
import logging
import threading

from podium.service.http import logs
from podium.service.http.logs import KIND, MOST_OF_A_KIND, MOST_WAITING, LineWriter, Log


class Stuck(io.StringIO):
    """Takes nothing until it is let go."""

    def __init__(self):
        super().__init__()
        self.gate = threading.Event()

    def write(self, text):
        self.gate.wait()
        return super().write(text)


def test_a_line_is_one_object():
    stream = io.StringIO()
    log = Log(stream)
    log.logger.info("two\nlines", count=2)
    log.close()
    (line,) = stream.getvalue().splitlines()
    told = json.loads(line)
    assert (told["message"], told["count"], told["level"]) == ("two\nlines", 2, "info")
    assert told["time"].endswith("Z")


def test_what_is_below_the_level_is_left_out():
    stream = io.StringIO()
    log = Log(stream, "warning")
    log.logger.info("no")
    log.logger.warning("yes")
    log.close()
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["yes"]


def test_a_stream_that_takes_nothing_holds_nobody_up():
    stream = Stuck()
    writer = LineWriter(stream)
    for number in range(MOST_WAITING + 10):
        writer.info(str(number))
    assert 8 <= writer.dropped <= 10
    stream.gate.set()
    writer.close()
    lines = stream.getvalue().splitlines()
    assert lines == [str(number) for number in range(len(lines))]
    assert len(lines) + writer.dropped == MOST_WAITING + 10


def test_what_libraries_log_is_structured_too():
    stream = io.StringIO()
    log = Log(stream)
    log.adopt("podium-test-library")
    logging.getLogger("podium-test-library").warning("watch %s", "out")
    log.close()
    told = json.loads(stream.getvalue())
    assert (told["message"], told["logger"], told["level"]) == (
        "watch out", "podium-test-library", "warning",
    )  # fmt: skip


def test_what_libraries_log_of_strangers_does_not_fill_the_log():
    stream = io.StringIO()
    log = Log(stream, "error")
    log.adopt("podium-test-library")
    for number in range(MOST_OF_A_KIND + 3):
        logging.getLogger("podium-test-library").error("%s", number)
    log.close()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["message"] for line in lines[:-1]] == [str(n) for n in range(MOST_OF_A_KIND)]
    assert (lines[-1]["kind"], lines[-1]["times"]) == ("error of podium-test-library", 3)


def test_there_is_room_again_later_and_what_was_left_out_is_told_then(monkeypatch):
    monkeypatch.setattr(logs, "WINDOW_S", 0.0)
    stream = io.StringIO()
    log = Log(stream)
    monkeypatch.setattr(log.limiter, "_next_s", float("inf"))
    for _ in range(MOST_OF_A_KIND + 2):
        log.logger.info("early", **{KIND: "a"})
    monkeypatch.setattr(log.limiter, "_next_s", 0.0)
    log.logger.info("late", **{KIND: "a"})
    log.close()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["message"] for line in lines[MOST_OF_A_KIND - 1 :]] == [
        "early", "log lines were suppressed", "late",
    ]  # fmt: skip
    assert not any(KIND in line for line in lines)
