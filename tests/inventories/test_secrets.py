import pytest

from ragaudit.inventories.secrets import Secrets, public


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://me:p%40ss@db:5432/kb", "login of p@ss failed, p%40ss"),
        ("postgresql://me:word@db/kb?sslpassword=hush", "word and hush"),
        ("host=db password='two words' dbname=kb", "no two words here"),
        ("https://q.example:6333?api_key=abcd1234", "key abcd1234"),
        ("http://host:8000", "got http://u:pw-of-another@host:1/x"),
        ("http://host:8000", "conninfo: host=db password=unknown user=me"),
        ("http://host:8000", "header 'Authorization': 'Bearer abcdefgh12345'"),
        ("http://host:8000", '{"api_key": "zzz999"}'),
        ("http://host:8000", "x-chroma-token: t0k3n,"),
    ],
)
def test_no_secret_is_left_in_a_message(url, said):
    cleaned = Secrets.of(url).clean(said)
    hidden = (
        "p@ss",
        "p%40ss",
        "word ",
        "hush",
        "two words",
        "abcd1234",
        "pw-of",
        "unknown",
        "abcdefgh",
        "zzz",
        "t0k3n",
    )
    assert "***" in cleaned
    assert not [value for value in hidden if value in cleaned]


def test_a_key_is_hidden_however_it_is_spelled():
    assert Secrets.of(None, "k/1=").clean("k/1= and k%2F1%3D") == "*** and ***"


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        ("postgresql://me:pw@db:5432/kb?sslpassword=x", "postgresql://db:5432/kb"),
        ("https://key@q.example:6333", "https://q.example:6333"),
        ("host=db user=me password=pw dbname=kb", "host=db dbname=kb"),
        ("./store", "./store"),
        ("user=me password=hunter2", "postgresql"),
        ("dbname = db password = hunter2", "dbname=db"),
        ("https://elastic:ab#cd@es:9200", "https://es:9200"),
        ("postgresql://u:p/w@h/db", "postgresql://h/db"),
    ],
)
def test_of_an_address_only_where_it_leads_is_shown(place, shown):
    assert public(place) == shown


def test_a_message_without_secrets_stays_as_it_is():
    said = "relation kb.chunks does not exist at key_1, token count 5"
    assert Secrets.of("postgresql://db/kb").clean(said) == said


def test_a_password_that_was_not_escaped_is_known_too():
    assert "ab#cd" not in Secrets.of("https://elastic:ab#cd@es:9200").clean("no log-in for ab#cd")
