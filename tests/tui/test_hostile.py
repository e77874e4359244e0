"""Whatever a trace holds opens on every screen, acts on nothing, and shows what it is."""

import pytest

from ragaudit.model.trace import Answer
from tests.tui.builders import bare, inventory, lost_at_pack, write
from tests.tui.conftest import NARROW, WIDE, drive, pane, screen_text

HOSTILE = {
    "markup": "see [/foo] [b]bold[/b] [link=http://x]x[/link] [@click=app.quit]",
    "escape": "\x1b[2J\x1b]0;owned\x07\x1bP1;x\x1b\\ after",
    "c1": "csi \x9b2J osc \x9d0;x\x9c end",
    "bidi": "safe \u202egnihtemos\u202c \u2066isolated\u2069",
    "hidden": "zero\u200bwidth \U000e0041tag \ufeffbom",
    "cjk": "有給休暇は入社六か月後に付与されます。" * 4,
    "rtl": "מהו חלון ההחזר לתוכניות שנתיות؟ ما هي نافذة الاسترداد",
    "emoji": "👩‍👩‍👧‍👦 🇩🇪 ✅ e\u0301",
    "long": "x" * 40_000,
    "lines": "a\r\nb\rc\td\u2028e\x00f",
    "surrogate": "half \ud800 pair",
}
ACTING = set("\x1b\x07\x9b\x9d\x9c\x00\r\u202e\u202c\u2066\u2069\u200b\ufeff\U000e0041\u2028")


def audit_of(tmp_path, text):
    storable = text.encode("utf-8", "replace").decode()
    result, trace = lost_at_pack(
        storable[:200] or "q", text=storable, gold_id=f"c9 {storable[:60]}", span=storable[:40]
    )
    trace = trace.model_copy(update={"answer": Answer(text=storable), "reference": storable})
    held = inventory({f"c9 {storable[:60]}": storable, "c1": storable, "c4": storable})
    return write(tmp_path / "r.audit", [(result, trace), bare("q2", storable)], held)


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "120x36"])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_opens_on_every_pane_and_dialog_and_nothing_of_it_acts(tmp_path, name, size):
    path = audit_of(tmp_path, HOSTILE[name])

    async def steps(app, pilot):
        seen = []
        for key in ("tab", "tab", "tab", "tab", "tab", "tab", "n", "p"):
            await pilot.press(key)
            await pilot.pause()
            seen.append(screen_text(app))
        app.screen.show_pane("chunk")
        await pilot.pause()
        for opened, closed in (("enter", "escape"), ("a", "escape"), ("question_mark", "escape"), ("f", "escape")):
            await pilot.press(opened)
            await pilot.pause()
            seen.append(screen_text(app))
            await pilot.press(closed)
        await pilot.press("right_parenthesis", "y")
        seen.append(screen_text(app))
        await pilot.press("ctrl+p")
        await pilot.pause(0.3)
        seen.append(screen_text(app))
        await pilot.press("escape", "o")
        await pilot.pause()
        seen.append(screen_text(app))
        assert app.is_running
        assert not ACTING & set("".join(seen))

    drive(path, size, steps, query_id=None, filter_text="")


def test_markup_is_shown_as_it_was_written(tmp_path):
    path = audit_of(tmp_path, HOSTILE["markup"])

    async def steps(app, pilot):
        assert "see [/foo] [b]bold[/b]" in pane(app, "query").text()
        assert pane(app, "chunk").title.startswith("Chunk c9 see [/foo] [b]")

    drive(path, WIDE, steps)


def test_what_would_act_is_shown_as_its_code(tmp_path):
    path = audit_of(tmp_path, HOSTILE["escape"])

    async def steps(app, pilot):
        assert "<U+001B>[2J<U+001B>]0;owned<U+0007>" in pane(app, "query").text()

    drive(path, WIDE, steps)


def test_a_chunk_of_40_000_characters_is_shown_to_its_end_and_a_longer_one_says_how_much_is_left(tmp_path):
    path = write(tmp_path / "r.audit", [lost_at_pack("q1")], inventory({"c9": "word " * 8_200}))

    async def steps(app, pilot):
        assert "(1,000 more characters)" in pane(app, "chunk").text()

    drive(path, WIDE, steps)


def test_text_that_the_users_of_a_query_may_not_read_is_never_shown(tmp_path):
    texts = {"c9": "SECRET gold", "c1": "public", "c4": "SECRET packed"}
    rows = [lost_at_pack("q1", leaks=("c4",), eligible=False, span="SECRET gold")]
    result, trace = rows[0]
    told = {"reference": "SECRET reference", "answer": Answer(text="SECRET as the leak has it")}
    trace = trace.model_copy(update=told)
    held = inventory(texts, {"c9": ("board",), "c4": ("board",), "c1": ("staff",)})
    path = write(tmp_path / "r.audit", [(result, trace)], held)

    async def steps(app, pilot):
        seen = [screen_text(app)]
        shown = " ".join(pane(app, "chunk").text().split())
        assert "(not shown: the query's user may not read it sha256:" in shown
        for key in ("tab",) * 6:
            await pilot.press(key)
            await pilot.pause()
            seen.append(screen_text(app))
        app.screen.show_pane("hits")
        await pilot.pause()
        for key in ("g", "j", "enter", "escape", "j", "enter", "escape", "j", "enter", "escape", "w", "Y"):
            await pilot.press(key)
            await pilot.pause()
            seen.append(screen_text(app))
        whole = "\n".join([*seen, app.clipboard])
        assert "SECRET" not in whole
        assert "!! LEAK   the user may not read c4" in whole
        assert "public" in whole

    drive(path, WIDE, steps)


def test_leaks_stand_first_on_the_overview_and_in_the_queue(tmp_path):
    path = write(tmp_path / "r.audit", [lost_at_pack("q1"), lost_at_pack("q2", leaks=("c4",))])

    async def steps(app, pilot):
        assert app.session.row(0).query_id == "q2"
        assert pane(app, "queue").text().splitlines()[0].startswith(" !!")
        await pilot.press("o")
        await pilot.pause()
        assert pane(app, "losses").text().splitlines()[0].strip() == "!! LEAK in 1 query: not readable for the user"
        await pilot.press("enter")
        await pilot.pause()
        assert (app.main_screen.NAME, app.session.filter.text, app.session.count) == ("review", "is:leak", 1)

    drive(path, WIDE, steps)
