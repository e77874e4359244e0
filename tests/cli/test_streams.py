import io
import sys

import pytest

from ragaudit.cli.streams import Progress, Streams, emphasised


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_on_a_terminal_one_line_is_rewritten_and_removed_in_the_end():
    clock, stream = Clock(), Terminal()
    with Progress("traces", 200, stream, clock=clock) as progress:
        progress(0)
        for done in (1, 50, 60):
            clock.now += 0.1
            progress(done)
        progress(61)
    assert stream.getvalue() == (
        "\r\x1b[K1 of 200 traces   10 a second"
        "\r\x1b[K50 of 200 traces   250 a second"
        "\r\x1b[K60 of 200 traces   200 a second"
        "\r\x1b[K"
    )


def test_in_a_log_lines_come_ever_more_rarely_and_without_control_characters():
    clock, stream = Clock(), io.StringIO()
    with Progress("traces", None, stream, clock=clock) as progress:
        for second in range(61):
            clock.now = float(second)
            progress(second * 1000)
    assert stream.getvalue().splitlines() == [
        "2,000 traces   1,000 a second",
        "6,000 traces   1,000 a second",
        "14,000 traces   1,000 a second",
        "30,000 traces   1,000 a second",
    ]


def test_what_a_resumed_run_starts_with_is_not_part_of_its_speed():
    clock, stream = Clock(), io.StringIO()
    with Progress("traces", None, stream, clock=clock) as progress:
        progress(50_000)
        clock.now = 4.0
        progress(54_000)
    assert stream.getvalue() == "54,000 traces   1,000 a second\n"


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_quiet_means_no_progress(stream):
    clock = Clock()
    with Progress("traces", None, stream, quiet=True, clock=clock) as progress:
        clock.now = 10.0
        progress(5)
    assert stream.getvalue() == ""


def test_quiet_silences_narration_but_neither_data_nor_errors(capsys):
    streams = Streams(quiet=True)
    streams.say("working")
    streams.complain("broken")
    streams.data("result\n")
    assert capsys.readouterr() == ("result\n", "ragaudit: broken\n")


def test_narration_is_cleaned(capsys):
    Streams().say("path \x1b[31m\u202e")
    assert capsys.readouterr().err == "path <U+001B>[31m<U+202E>\n"


@pytest.mark.parametrize(
    ("tty", "environment", "bold"),
    [
        (True, {}, True),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
        (False, {}, False),
    ],
)
def test_headings_are_bold_only_where_a_terminal_shows_it(tty, environment, bold, monkeypatch):
    stream = Terminal() if tty else io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    Streams().text("-- Why ---\nbecause\n")
    assert stream.getvalue() == ("\x1b[1m-- Why ---\x1b[0m\nbecause\n" if bold else "-- Why ---\nbecause\n")


def test_only_headings_and_alarms_are_emphasised():
    assert emphasised("a -- b\n!! LEAK\n") == "a -- b\n\x1b[1m!! LEAK\x1b[0m\n"
