"""Which paths are read and written: inside what the user named, links followed, and nothing replaced."""

import pytest
from mcp_builders import answered, desk, few, refused

from ragaudit.errors import ConfigError
from ragaudit.mcp.folders import Folders


@pytest.fixture
def home(tmp_path):
    """A named folder with a bundle in it, and another beside it that is not named."""
    few(tmp_path / "named" / "demo")
    few(tmp_path / "beside")
    return tmp_path


def _files(folder):
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("given", ["../beside", "demo/../../beside", "{home}/beside", "/", "..", "~"])
def test_a_path_outside_is_refused_and_the_error_says_what_is_named(home, given):
    session = desk(home / "scratch", home / "named")
    if given == "~":
        assert "no such folder" in refused(session, "check", bundle=given)
        return
    said = refused(session, "check", bundle=given.format(home=home))
    assert f"not inside what the user named at start ({home / 'named'}). Nothing there is read." in said


@pytest.mark.parametrize("tool", ["show", "next", "report"])
def test_an_audit_file_outside_is_refused_by_every_tool(home, tool):
    session = desk(home / "scratch", home / "named")
    assert "Nothing there is read" in refused(session, tool, audit=str(home / "beside" / "x.audit"))


def test_both_sides_of_a_comparison_must_be_inside(home):
    session = desk(home / "scratch", home / "named")
    answered(session, "audit", bundle="demo")
    for sides in ({"base": "session:demo", "candidate": "../x"}, {"base": "../x", "candidate": "session:demo"}):
        assert "Nothing there is read" in refused(session, "compare", **sides)


def test_a_linked_folder_that_leads_outside_is_refused(home):
    (home / "named" / "link").symlink_to(home / "beside")
    session = desk(home / "scratch", home / "named")
    assert "Nothing there is read" in refused(session, "check", bundle="link")


@pytest.mark.parametrize("name", ["traces.jsonl", "chunks.jsonl", "ragaudit.toml"])
def test_a_linked_file_in_a_bundle_that_leads_outside_is_refused(home, name):
    path = home / "named" / "demo" / name
    path.unlink()
    path.symlink_to(home / "beside" / name)
    session = desk(home / "scratch", home / "named")
    assert "Nothing there is read" in refused(session, "check", bundle="demo")


def test_a_link_that_stays_inside_is_followed(home):
    (home / "named" / "link").symlink_to(home / "named" / "demo")
    data, _ = answered(desk(home / "scratch", home / "named"), "check", bundle="link")
    assert data["page"]["total"] == 5


def test_a_named_folder_may_itself_be_a_link(home):
    (home / "named2").symlink_to(home / "named")
    data, _ = answered(desk(home / "scratch", home / "named2"), "check", bundle="demo")
    assert data["run"] == "demo"


@pytest.mark.parametrize("given", ["a\0b", "x" * 5000])
def test_what_cannot_be_a_path_is_refused(home, given):
    with pytest.raises(ConfigError, match="no path"):
        desk(home / "scratch", home / "named").folders.inside(given)


def test_the_session_folder_is_reached_by_handles_alone(home):
    session = desk(home / "scratch", home / "named")
    answered(session, "audit", bundle="demo")
    assert "Nothing there is read" in refused(session, "report", audit=str(home / "scratch" / "demo.audit"))
    assert "there are: session:demo" in refused(session, "report", audit="session:other")
    assert "no audit of this session" in refused(session, "report", audit="session:../named/x")


def test_nothing_of_the_user_is_written(home):
    before = _files(home / "named")
    session = desk(home / "scratch", home / "named")
    for tool, arguments in (
        ("check", {"bundle": "demo"}),
        ("audit", {"bundle": "demo"}),
        ("show", {"audit": "session:demo"}),
        ("next", {"audit": "session:demo"}),
        ("report", {"audit": "session:demo"}),
        ("compare", {"base": "session:demo", "candidate": "session:demo"}),
    ):
        answered(session, tool, **arguments)
    assert _files(home / "named") == before


def test_with_a_folder_to_write_the_audit_is_kept_there_and_read_by_path(home):
    (home / "audits").mkdir()
    session = desk(home / "scratch", home / "named", write=home / "audits")
    data, _ = answered(session, "audit", bundle="demo")
    assert data["audit"] == str(home / "audits" / "demo.audit")
    assert data["kept"] == f"Kept in {home / 'audits' / 'demo.audit'}."
    assert answered(session, "report", audit="demo.audit")[0]["audit"] == "demo.audit"
    later = desk(home / "scratch", home / "named", write=home / "audits")
    assert answered(later, "report", audit=data["audit"])[0]["markdown"].startswith("# RAG audit: demo")


def test_a_file_of_an_earlier_session_is_not_replaced(home):
    (home / "audits").mkdir()
    (home / "audits" / "demo.audit").write_text("the user's")
    session = desk(home / "scratch", home / "named", write=home / "audits")
    assert "Pass another name" in refused(session, "audit", bundle="demo")
    assert (home / "audits" / "demo.audit").read_text() == "the user's"
    assert answered(session, "audit", bundle="demo", name="mine")[0]["page"]["total"] == 6


@pytest.mark.parametrize("end", [".audit", ".audit.partial"])
def test_a_link_where_the_audit_would_go_is_not_written_through(home, end):
    (home / "audits").mkdir()
    (home / "audits" / f"demo{end}").symlink_to(home / "beside" / "target")
    session = desk(home / "scratch", home / "named", write=home / "audits")
    assert "Pass another name" in refused(session, "audit", bundle="demo")
    assert not (home / "beside" / "target").exists()


@pytest.mark.parametrize("name", ["../x", "a/b", ".hidden", ""])
def test_a_name_that_is_no_file_name_is_refused_or_ignored(home, name):
    session = desk(home / "scratch", home / "named")
    if not name:
        assert answered(session, "audit", bundle="demo", name=name)[0]["audit"] == "session:demo"
        return
    assert "is no file name" in refused(session, "audit", bundle="demo", name=name)


def test_two_bundles_of_one_name_do_not_share_an_audit(home):
    few(home / "named" / "new" / "demo")
    session = desk(home / "scratch", home / "named")
    answered(session, "audit", bundle="demo")
    assert "session:demo: is there already, and not from this bundle" in refused(session, "audit", bundle="new/demo")
    assert answered(session, "audit", bundle="new/demo", name="new")[0]["audit"] == "session:new"


def test_a_folder_that_is_not_there_is_refused_at_start(tmp_path):
    with pytest.raises(ConfigError, match="no such folder"):
        Folders.of((tmp_path / "absent",), write=None, scratch=tmp_path)
