import pytest

from ragaudit.errors import ConfigError
from ragaudit.store.whole_file import whole_file


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_in_place_only_when_all_of_it_is_written(tmp_path):
    path = tmp_path / "out.md"
    with whole_file(path, replace=False) as file:
        file.write("é\n")
        assert not path.exists()
    assert path.read_bytes() == b"\xc3\xa9\n"
    assert names(tmp_path) == ["out.md"]


def test_an_error_leaves_what_was_there_and_no_half_file(tmp_path):
    path = tmp_path / "out.md"
    path.write_text("before")
    with pytest.raises(ZeroDivisionError), whole_file(path, replace=True) as file:
        file.write("half")
        raise ZeroDivisionError
    assert path.read_text() == "before"
    assert names(tmp_path) == ["out.md"]


def test_a_file_that_is_there_is_written_over_only_on_request(tmp_path):
    path = tmp_path / "out.md"
    path.write_text("before")
    with pytest.raises(ConfigError, match=r"out\.md: exists\. Pass --replace"), whole_file(path, replace=False):
        pass
    assert path.read_text() == "before"
    with whole_file(path, replace=True) as file:
        file.write("after")
    assert path.read_text() == "after"


def test_a_file_that_came_meanwhile_is_not_written_over(tmp_path):
    path = tmp_path / "out.md"
    with pytest.raises(ConfigError, match="exists"), whole_file(path, replace=False) as file:
        file.write("ours")
        path.write_text("theirs")
    assert path.read_text() == "theirs"
    assert names(tmp_path) == ["out.md"]


def test_a_link_that_leads_nowhere_counts_as_a_file(tmp_path):
    (tmp_path / "out.md").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="exists"), whole_file(tmp_path / "out.md", replace=False):
        pass
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("name", ["no/such/folder.md", ".", ""])
def test_what_cannot_be_written_is_a_configuration_error(tmp_path, monkeypatch, name):
    from pathlib import Path

    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError), whole_file(Path(name), replace=True):
        pass
    assert names(tmp_path) == []
