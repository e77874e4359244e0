"""Theme and keys from ragaudit.toml: what holds, what is refused, and that the app then listens to them."""

import pytest

from ragaudit.config import TuiSettings
from ragaudit.errors import ConfigError
from ragaudit.model.review import ReviewVerdict
from ragaudit.store import Reviews
from ragaudit.tui import app as module
from ragaudit.tui.app import ReviewApp
from ragaudit.tui.keys import EVERYWHERE, SCREEN_KEYS
from ragaudit.tui.preferences import ANSI, checked_keymap, checked_theme
from ragaudit.tui.session import Session
from tests.tui.builders import lost_at_pack, write
from tests.tui.conftest import NARROW, drive, pane, screen_text


def refusal(call, *arguments, **options):
    with pytest.raises(ConfigError) as caught:
        call(*arguments, **options)
    return str(caught.value)


def test_nothing_wanted_is_the_dark_theme_and_the_keys_as_they_are():
    assert checked_theme(None, "None", no_color=False) == "ragaudit-dark"
    assert checked_keymap({}, "None") == {}


@pytest.mark.parametrize("name", ["ragaudit-light", "nord", "ansi-dark"])
def test_any_theme_is_taken_by_its_name(name):
    assert checked_theme(name, "ragaudit.toml", no_color=False) == name


def test_a_theme_that_is_none_is_refused_with_those_there_are():
    said = refusal(checked_theme, "drak", "ragaudit.toml", no_color=False)
    assert said.startswith("ragaudit.toml: 'drak' is no theme. Use ragaudit-dark, ragaudit-light, textual-dark, ")


def test_without_colour_a_theme_of_the_terminals_own_colours_is_refused():
    assert {"ansi-dark", "ansi-light"} == ANSI
    said = refusal(checked_theme, "ansi-dark", "--theme", no_color=True)
    assert said == ("--theme: 'ansi-dark' cannot be read with NO_COLOR set. Use ragaudit-dark, or unset NO_COLOR.")
    assert checked_theme("nord", "--theme", no_color=True) == "nord"


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ("A", "A"),
        ("/", "slash"),
        ("slash", "slash"),
        ("+", "plus"),
        ("ctrl+k", "ctrl+k"),
        ("f5", "f5"),
        ("V, f5", "V,f5"),
        ("é", "é"),
    ],
)
def test_a_key_may_be_written_as_it_is_or_by_its_name(written, named):
    keymap = {"app.find": "9"} if named == "slash" else {}
    assert checked_keymap(keymap | {"review.agree": written}, "x")["review.agree"] == named


def test_two_keys_may_change_places():
    given = {"review.agree": "2", "review.disagree": "1"}
    assert checked_keymap(given, "x") == given


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"review.agre": "A"}, "tui.keymap: 'review.agre' is no key's id. Did you mean 'review.agree'?"),
        ({"zzz": "A"}, "tui.keymap: 'zzz' is no key's id. docs/review.md lists the ids."),
        ({"review.agree": "2"}, "tui.keymap: '2' would be both review.agree and review.disagree on the review screen."),
        ({"review.undo": "f"}, "tui.keymap: 'f' would be both app.filter and review.undo on the review screen."),
        ({"overview.pause": "j"}, "tui.keymap: 'j' would be both pane.down and overview.pause on the overview screen."),
        ({"review.agree": "ctrl+p"}, "tui.keymap.review.agree: 'ctrl+p' is taken by the terminal app itself."),
        ({"review.agree": "agree"}, "tui.keymap.review.agree: 'agree' is no key. Write a letter or sign, or a name:"),
        ({"review.agree": ""}, "tui.keymap.review.agree: '' is no key."),
    ],
)
def test_an_id_or_a_key_that_cannot_be_is_refused_with_what_to_do(given, said):
    assert refusal(checked_keymap, given, "ragaudit.toml").startswith(f"ragaudit.toml: {said}")


def test_no_key_of_ours_does_two_things_on_one_screen():
    for keys in SCREEN_KEYS.values():
        named = [one for key in (*EVERYWHERE, *keys) for one in key.keys.split(",")]
        assert len(set(named)) == len(named)
    known = {key.id for keys in (EVERYWHERE, *SCREEN_KEYS.values()) for key in keys}
    assert {ReviewApp.BINDINGS[n].id for n in range(len(EVERYWHERE))} <= known


def test_the_app_listens_to_the_key_that_took_the_place_and_the_help_shows_it(tmp_path, monkeypatch):
    audit = write(tmp_path / "run.audit", [lost_at_pack("q1"), lost_at_pack("q2")])
    monkeypatch.setattr(
        "tests.tui.conftest.ReviewApp",
        lambda session: ReviewApp(session, keymap=checked_keymap({"review.agree": "A"}, "x"), theme="nord"),
    )

    async def steps(app, pilot):
        assert app.theme == "nord"
        await pilot.press("1")
        assert app.session.reviewed == 0
        await pilot.press("A")
        assert app.session.reviewed == 1
        await pilot.press("question_mark")
        assert "\n  A         Agree with the diagnosis, and go on\n" in pane(app, "help").text()

    drive(audit, NARROW, steps)
    with Reviews.open(audit) as reviews:
        assert reviews.of("q1").verdict is ReviewVerdict.AGREE


@pytest.mark.parametrize("theme", ["ragaudit-light", "textual-light", "ansi-dark", "dracula"])
def test_every_theme_names_the_hues_that_the_screens_use(tmp_path, monkeypatch, theme):
    audit = write(tmp_path / "run.audit", [lost_at_pack("q1")])
    monkeypatch.setattr("tests.tui.conftest.ReviewApp", lambda session: ReviewApp(session, theme=theme))

    async def steps(app, pilot):
        assert app.theme == theme
        assert "FAIL at Rerank/pack" in screen_text(app)

    drive(audit, NARROW, steps)


def test_without_colour_the_palette_offers_no_theme_that_cannot_be_read(tmp_path):
    with Session.open(write(tmp_path / "run.audit", [lost_at_pack("q1")])) as session:
        assert not ANSI & set(ReviewApp(session, no_color=True).available_themes)
        assert set(ReviewApp(session).available_themes) > ANSI


def test_settings_are_checked_before_the_audit_is_opened(tmp_path):
    settings = TuiSettings(theme="nope")
    options = {"query_id": None, "filter_text": None, "place": "x.toml", "no_color": False}
    assert refusal(module.run, tmp_path / "absent", settings=settings, **options).startswith("x.toml: 'nope' is no")
