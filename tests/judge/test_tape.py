import json
from hashlib import sha256
from pathlib import Path

import pytest
from tape_builders import a_reply, a_request

from ragaudit.errors import TapeMissError
from ragaudit.judge.cassette import part_of
from ragaudit.judge.recording import asked
from ragaudit.judge.redact import without_credentials
from ragaudit.judge.tape import Tape, TapeMode, request_key
from ragaudit.model.judgement import JudgeSample, Reply, Request


def taped(path: Path, *requests: Request, mode: TapeMode = TapeMode.NEW) -> Path:
    with Tape.open(mode, cassette=path, cache=None) as tape:
        for request in requests:
            tape.record(request, a_reply(f"re: {request.messages[-1]['content']}"))
    return path


def miss(path: Path, request: Request, about: JudgeSample | None = None) -> str:
    with Tape.open(TapeMode.NONE, cassette=path, cache=None) as tape, pytest.raises(TapeMissError) as caught:
        tape.find(request, about=about)
    assert caught.value.exit_code == 4
    return str(caught.value)


# --- the key --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "over",
    [
        {"model": "openai/other"},
        {"api_base": "http://localhost:1/v1"},
        {"parameters": {"temperature": 0.1}},
        {"parameters": {"temperature": 0, "seed": 1}},
        {"messages": ({"role": "user", "content": "Is the sky blue?"},)},
        {"reply_schema": {"type": "object"}},
        {"prompt": "claims"},
        {"version": 2},
    ],
)
def test_everything_that_a_reply_depends_on_is_in_the_key(over: dict[str, object]) -> None:
    assert request_key(a_request(**over)) != request_key(a_request())


def test_what_a_call_is_for_is_not_in_the_key() -> None:
    assert request_key(a_request(purpose="repair")) == request_key(a_request(purpose="matrix"))


def test_the_key_is_the_same_whatever_the_order_of_parameters_and_the_form_of_numbers() -> None:
    one = a_request(parameters={"temperature": 0, "seed": 1, "nested": {"a": 1.0, "b": [2.0]}})
    two = a_request(parameters={"nested": {"b": [2], "a": 1}, "seed": 1.0, "temperature": 0.0})
    assert request_key(one) == request_key(two)


def test_the_key_never_changes_between_versions_of_ragaudit() -> None:
    # Every cassette that was ever committed depends on this.
    request = a_request(
        'Zürich 日本 \U0001f600 \x00\b\t\n\x1f\x7f \u2028 "/\\\\', parameters={"top_p": 0.1, "seed": 2**53}
    )
    canonical = json.dumps(asked(request), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    assert request_key(request) == "sha256:" + sha256(canonical.encode()).hexdigest()
    assert request_key(a_request()) == "sha256:5e83abd1cdea23d8c1e9932fb8fdffee23a3eb35724e4d6e76bc83ea038a500e"


def test_credentials_are_not_in_the_key() -> None:
    bare = a_request(api_base="http://host:1/v1", parameters={"temperature": 0})
    keyed = a_request(
        api_base="http://me:secret@host:1/v1?api-version=2&key=x",
        parameters={"temperature": 0, "api_key": "sk-1", "extra_headers": {"Authorization": "Bearer x"}},
    )
    plain = a_request(api_base="http://host:1/v1", parameters={"temperature": 0, "extra_headers": {}})
    assert request_key(keyed) == request_key(plain) != request_key(bare)


@pytest.mark.parametrize("password", ["se/cret", "se?cret", "se#cret", "se@cret", "se:cret"])
def test_a_password_that_was_not_escaped_is_no_part_of_the_address(password: str) -> None:
    assert without_credentials(f"https://me:{password}@host:1/v1?key=x#y") == "https://host:1/v1"


@pytest.mark.parametrize("user", ["", "me:pw@"])
def test_an_at_sign_in_the_query_string_lets_no_key_through(user: str) -> None:
    assert without_credentials(f"https://{user}host/v1?user=a@b.com&api_key=SECRET") == "https://host/v1"


@pytest.mark.parametrize("url", ["http://host:1/v1", "host:1/v1", "https://[::1]:8080/v1/"])
def test_an_address_without_credentials_stays_as_it_is(url: str) -> None:
    assert without_credentials(url) == url


def test_half_a_surrogate_pair_has_a_key_of_its_own() -> None:
    keys = {request_key(a_request(text)) for text in ("\ud800", "\udc00", "?", "\ufffd")}
    assert len(keys) == 4


# --- modes ----------------------------------------------------------------------------------------------------


def test_none_replays_and_writes_nothing(tmp_path: Path) -> None:
    path = taped(tmp_path / "c.jsonl", a_request())
    before = {p: p.read_bytes() for p in tmp_path.iterdir()}
    with Tape.open(TapeMode.NONE, cassette=path, cache=tmp_path / "cache") as tape:
        reply = tape.find(a_request())
        with pytest.raises(AssertionError):
            tape.record(a_request(), a_reply())
    assert reply is not None and reply.text == "re: Is the sky blue?"
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_once_records_while_there_is_no_cassette_and_then_only_replays(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    with Tape.open(TapeMode.ONCE, cassette=path, cache=None) as tape:
        assert tape.records and tape.find(a_request()) is None
        tape.record(a_request(), a_reply())
        assert tape.find(a_request()) == a_reply()
    with Tape.open(TapeMode.ONCE, cassette=path, cache=None) as tape:
        assert not tape.records and tape.find(a_request()) == a_reply()
        with pytest.raises(TapeMissError, match=r"no reply for matrix@1"):
            tape.find(a_request("other"))


def test_once_goes_on_with_a_recording_that_crashed(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    tape = Tape.open(TapeMode.ONCE, cassette=path, cache=None)
    tape.record(a_request(), a_reply())
    with Tape.open(TapeMode.ONCE, cassette=path, cache=None) as after_the_crash:
        assert after_the_crash.records and after_the_crash.find(a_request()) == a_reply()
        assert after_the_crash.find(a_request("other")) is None


def test_new_replays_what_is_there_and_records_what_is_not(tmp_path: Path) -> None:
    path = taped(tmp_path / "c.jsonl", a_request("one"))
    with Tape.open(TapeMode.NEW, cassette=path, cache=None) as tape:
        assert tape.find(a_request("one")) is not None
        assert tape.find(a_request("two")) is None
        tape.record(a_request("two"), a_reply("second"))
    with Tape.open(TapeMode.NONE, cassette=path, cache=None) as tape:
        found = [tape.find(a_request(text)) for text in ("one", "two")]
    assert [reply and reply.text for reply in found] == ["re: one", "second"]


def test_all_asks_everything_again_once(tmp_path: Path) -> None:
    path = taped(tmp_path / "c.jsonl", a_request("one"), a_request("two"))
    with Tape.open(TapeMode.ALL, cassette=path, cache=None) as tape:
        assert tape.find(a_request("one")) is None
        tape.record(a_request("one"), a_reply("again"))
        assert tape.find(a_request("one")) == a_reply("again")
    with Tape.open(TapeMode.NONE, cassette=path, cache=None) as tape:
        assert tape.find(a_request("one")) == a_reply("again")
        assert tape.find(a_request("two")) == a_reply("re: two")


@pytest.mark.parametrize(
    "reply",
    [
        a_reply(finish_reason="length"),
        a_reply(finish_reason="max_tokens"),
        a_reply(finish_reason="content_filter"),
        a_reply(finish_reason="too_long"),
        a_reply(refused=True),
    ],
)
def test_a_reply_that_was_cut_off_or_refused_is_kept_as_what_it_is(tmp_path: Path, reply: Reply) -> None:
    places = {"cassette": tmp_path / "c.jsonl", "cache": tmp_path / "cache"}
    with Tape.open(TapeMode.NEW, **places) as tape:
        tape.record(a_request(), reply)
        assert tape.find(a_request()) == reply
    for name, path in places.items():
        with Tape.open(TapeMode.NONE, **(dict.fromkeys(places) | {name: path})) as tape:
            assert tape.find(a_request()) == reply


def test_a_cassette_that_holds_a_damaged_reply_does_not_replay_it(tmp_path: Path) -> None:
    path = taped(tmp_path / "c.jsonl", a_request())
    path.write_text(path.read_text().replace('"finish_reason": "stop"', '"finish_reason": 7'))
    assert "first difference: none, but its reply cannot be used." in miss(path, a_request())


def test_what_the_cache_knows_goes_into_a_cassette_that_is_recorded(tmp_path: Path) -> None:
    with Tape.open(TapeMode.NEW, cassette=None, cache=tmp_path / "cache") as tape:
        tape.record(a_request(), a_reply())
    with Tape.open(TapeMode.NEW, cassette=tmp_path / "c.jsonl", cache=tmp_path / "cache") as tape:
        assert tape.find(a_request()) == a_reply()
    with Tape.open(TapeMode.NONE, cassette=tmp_path / "c.jsonl", cache=None) as tape:
        assert tape.find(a_request()) == a_reply()


def test_a_tape_without_files_finds_nothing(tmp_path: Path) -> None:
    with Tape.open(TapeMode.NEW, cassette=None, cache=None) as tape:
        assert tape.find(a_request()) is None
        tape.record(a_request(), a_reply())
    with Tape.open(TapeMode.NONE, cassette=None, cache=None) as tape, pytest.raises(TapeMissError) as caught:
        tape.find(a_request())
    assert "No cassette or cache is set." in str(caught.value)


def test_none_with_a_cache_that_does_not_exist_makes_none(tmp_path: Path) -> None:
    with Tape.open(TapeMode.NONE, cassette=None, cache=tmp_path / "cache") as tape, pytest.raises(TapeMissError):
        tape.find(a_request())
    assert list(tmp_path.iterdir()) == []


# --- what a miss says -----------------------------------------------------------------------------------------


def test_a_miss_names_cassette_prompt_query_nearest_difference_and_what_to_run(tmp_path: Path) -> None:
    path = taped(tmp_path / "c.jsonl", a_request("Is the sky blue?\nYes or no."), a_request("Nothing alike"))
    assert miss(path, a_request("Is the sky blue?\nYes or maybe."), JudgeSample(query_id="q7", query="sky")) == (
        f'{path}: no reply for matrix@1 on "q7" "sky". '
        'Nearest: matrix@1; first difference: message 2, line 2 is "Yes or maybe.", recorded "Yes or no.". '
        "Record it: run the same command with --tape new, where the judge model can be reached."
    )


@pytest.mark.parametrize(
    ("over", "difference"),
    [
        ({"version": 2}, "version is 2, recorded 1"),
        ({"model": "openai/x"}, 'model is "openai/x", recorded "openai/m"'),
        ({"api_base": "http://h/v1"}, 'api_base is "http://h/v1", recorded not set'),
        ({"parameters": {"temperature": 0.7}}, "parameter temperature is 0.7, recorded 0"),
        ({"parameters": {"temperature": 0, "seed": 3}}, "parameter seed is 3, recorded not set"),
        ({"reply_schema": {"type": "object"}}, "the reply schema"),
        ({"prompt": "claims"}, 'prompt is "claims", recorded "matrix"'),
        ({"messages": ({"role": "user", "content": "You judge."},)}, 'message 1 is from "user", recorded "system"'),
        ({"messages": ({"role": "system", "content": "You judge."},)}, "1 messages, recorded 2"),
        (
            {
                "messages": (
                    {"role": "system", "content": "You judge."},
                    {"role": "user", "content": "Is the sky blue?\nx"},
                )
            },
            "message 2 has 2 lines, recorded 1",
        ),
    ],
)
def test_the_first_difference_is_named(tmp_path: Path, over: dict[str, object], difference: str) -> None:
    assert f"first difference: {difference}." in miss(taped(tmp_path / "c.jsonl", a_request()), a_request(**over))


def test_a_difference_late_in_a_long_line_is_shown_where_it_is(tmp_path: Path) -> None:
    path = taped(tmp_path / "c.jsonl", a_request("x" * 500 + " old"))
    assert 'xx new", recorded "…xxx' in miss(path, a_request("x" * 500 + " new"))


def test_a_message_holds_no_control_characters_of_the_texts(tmp_path: Path) -> None:
    path = taped(tmp_path / "c.jsonl", a_request("safe"))
    message = miss(path, a_request("\x1b[31m\u202ered\r"))
    assert "\x1b" not in message and "\u202e" not in message and "\r" not in message
    assert '"\\x1b[31m\\u202ered\\x0d"' in message


def test_a_miss_in_an_empty_cassette_says_so(tmp_path: Path) -> None:
    assert "Nothing is recorded there." in miss(tmp_path / "none.jsonl", a_request())


def test_a_miss_says_that_a_recording_was_interrupted(tmp_path: Path) -> None:
    path = taped(tmp_path / "c.jsonl", a_request("one"))
    tape = Tape.open(TapeMode.NEW, cassette=path, cache=None)
    tape.record(a_request("two"), a_reply())
    assert f"A recording was interrupted ({part_of(path).name} is there)." in miss(path, a_request("two"))


def test_a_miss_of_the_cache_names_the_nearest_recording_too(tmp_path: Path) -> None:
    with Tape.open(TapeMode.NEW, cassette=None, cache=tmp_path / "cache") as tape:
        tape.record(a_request("old words"), a_reply())
    with (
        Tape.open(TapeMode.NONE, cassette=None, cache=tmp_path / "cache") as tape,
        pytest.raises(TapeMissError) as caught,
    ):
        tape.find(a_request("new words"))
    assert str(caught.value).startswith(f"{tmp_path / 'cache'}: no reply for matrix@1.")
    assert 'message 2, line 1 is "new words", recorded "old words"' in str(caught.value)


def test_a_recording_of_the_same_prompt_is_nearer_than_a_like_text_of_another(tmp_path: Path) -> None:
    path = taped(tmp_path / "c.jsonl", a_request("same text", prompt="claims"), a_request("far away"))
    assert "Nearest: matrix@1" in miss(path, a_request("same text"))


def test_a_line_of_a_cassette_can_be_read_in_review(tmp_path: Path) -> None:
    path = taped(tmp_path / "c.jsonl", a_request("Größe 日本"))
    entry = json.loads(path.read_text().splitlines()[1])
    assert list(entry) == ["key", "request", "reply"]
    assert entry["request"]["messages"][1]["content"] == "Größe 日本"
    assert "Größe 日本" in path.read_text()
