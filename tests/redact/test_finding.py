"""What is found in a text and what is not, by a table of cases."""

import pytest

from ragaudit.redact.names import listed_names
from ragaudit.redact.pseudonyms import Pseudonyms
from ragaudit.redact.shadow import Form, shadow
from ragaudit.redact.text import Redactor

KEY = b"0123456789abcdef"
REDACTOR = Redactor(Pseudonyms(KEY))
TAIL = "a8Fk2Lm9Qx7Zt4Wc1Vb6Nr3Y"

EMAILS = {
    "write to ana@example.com.": "ana@example.com",
    "<ana@example.com>, bob": "ana@example.com",
    "mailto:ana@example.com?subject=x": "ana@example.com",
    "to=ana@example.com&x=1": "ana@example.com",
    "Ana.K+rag_7@mail.Example.co.uk!": "ana.k+rag_7@mail.example.co.uk",
    "メールはana@example.comまで": "ana@example.com",
    "请联系 ana@example.com。": "ana@example.com",
    "כתבו אל ana@example.com בבקשה": "ana@example.com",
    "\u202bana@example.com\u202c": "ana@example.com",
    "ana＠example．com": "ana@example.com",
    "ana@exam\u200bple.com": "ana@example.com",
    "a\u00adna\u2060@example.com": "ana@example.com",
    "jörg.müller@bücher.example": "jörg.müller@bücher.example",
    "用户@例子.公司": "用户@例子.公司",
    "user:ana@example.com": "ana@example.com",
    "doc/ana@example.com/7": "ana@example.com",
}
PHONES = {
    "call +49 170 1234567 today": "+491701234567",
    "+49 (0)170 1234567": "+491701234567",
    "+49-30-123456-78": "+493012345678",
    "0049 30 1234567": "+49301234567",
    "+1 (555) 123-4567": "+15551234567",
    "+44 20 7946 0958": "+442079460958",
    "+４９ １７０ １２３４５６７": "+491701234567",
    "+٤٩ ١٧٠ ١٢٣٤٥٦٧": "+491701234567",
    "(030) 123 4567": "0301234567",
    "030/1234567": "0301234567",
    "0170 1234567": "01701234567",
    "01 23 45 67 89": "0123456789",
    "(555) 123-4567": "5551234567",
    "555-123-4567": "5551234567",
    "Tel.: 1234567": "1234567",
    "電話: 03-1234-5678": "0312345678",
    "Handy 0170.1234567": "01701234567",
}
CARDS = {
    "4111 1111 1111 1111": "4111111111111111",
    "4111-1111-1111-1111.": "4111111111111111",
    "4111111111111111": "4111111111111111",
    "４１１１　１１１１　１１１１　１１１１": "4111111111111111",
    "5500 0000 0000 0004": "5500000000000004",
    "3782 822463 10005": "378282246310005",
}
IBANS = {
    "DE89 3704 0044 0532 0130 00": "DE89370400440532013000",
    "IBAN: de89370400440532013000 BIC X": "DE89370400440532013000",
    "GB82 WEST 1234 5698 7654 32.": "GB82WEST12345698765432",
}
SECRETS = {
    f"key sk-{TAIL} here": f"sk-{TAIL}",
    f"sk-proj-{TAIL}": f"sk-proj-{TAIL}",
    f"ghp_{TAIL}": f"ghp_{TAIL}",
    "AKIA" + "IOSFODNN7EXAMPLE": "AKIA" + "IOSFODNN7EXAMPLE",
    f"Authorization: Bearer {TAIL}": TAIL,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "postgres://ana:p@ss-w0rd@db.example/x": "ana:p@ss-w0rd",
    "https://token123@git.example/x": "token123",
    "DB_PASSWORD=hunter2": "hunter2",
    "Server=db;Password=correcthorse;": "correcthorse",
    "Passwort: geheim99": "geheim99",
    f'"api_key": "{TAIL}"': TAIL,
    f"AccountKey={TAIL}{TAIL}==;": f"{TAIL}{TAIL}==",
    f"client-secret: {TAIL}": TAIL,
}
NOTHING = [
    "", " ", "user@host", "@ana", "a@b", "see https://example.com/@ana/post", "1@2.3",
    "version 10.20.30.40", "v0.12.3", "2026-10-01T09:00:00Z", "2026-10-01", "01-02-2024",
    "01.02.2024 10:00", "01/02/2024",
    "ISBN 978-3-16-148410-0", "ISBN 0-306-40615-2", "978-0-306-40615-7", "score 0.7775123456",
    "0.4111111111111111",
    "-12.3456789", "+12.3456789", "1700000000000", "1700000000000000", "1234567890123456", "0000000000000000",
    "4111111111111112", "4111 1111 11111111",
    "chunk 12345678", "c-0301234567", "vec-0091", "hb-oncall-pay#1", "10 000 000",
    "3.141592653589793", "550e8400-e29b-41d4-a716-446655440000", "d41d8cd98f00b204e9800998ecf8427e", "1,234,567.89",
    "09:00-17:00", "2020-2024", "90 days, 365 days, 1178 documents", "DE00 3704 0044 0532 0130 00", "DE12",
    "Password: must be twelve characters long.", "Your password expires after 90 days.", "API keys begin with osk_",
    "The token is valid for 20 minutes.", "token: a word", "key: value", "basic understanding of bearer bonds",
    "primary key: customer_identifier_column", "sk-learn", "task-force-of-many-people-here", "8.8.8.8", "::1",
    "x" * 5000, "1 " * 500, "@" * 300,
]  # fmt: skip


def values(text: str, redactor: Redactor = REDACTOR, *, is_id: bool = False) -> list[tuple[str, str]]:
    return [(one.kind.value, one.value) for one in redactor.find(shadow(text), is_id=is_id)]


@pytest.mark.parametrize(("text", "value"), EMAILS.items())
def test_an_email_address_is_found(text: str, value: str) -> None:
    assert values(text) == [("email", value)]


@pytest.mark.parametrize(("text", "value"), PHONES.items())
def test_a_phone_number_is_found(text: str, value: str) -> None:
    assert values(text) == [("phone", value)]


@pytest.mark.parametrize(("text", "value"), CARDS.items())
def test_a_card_number_is_found(text: str, value: str) -> None:
    assert values(text) == [("card", value)]


@pytest.mark.parametrize(("text", "value"), IBANS.items())
def test_an_iban_is_found(text: str, value: str) -> None:
    assert values(text) == [("iban", value)]


@pytest.mark.parametrize(("text", "value"), SECRETS.items())
def test_a_secret_is_found(text: str, value: str) -> None:
    assert values(text) == [("secret", value)]


@pytest.mark.parametrize("text", NOTHING)
def test_what_only_looks_like_it_is_left(text: str) -> None:
    assert values(text) == []


@pytest.mark.parametrize("end", ["-----END RSA PRIVATE KEY-----", ""])
def test_a_private_key_block_goes_whole_even_without_its_end(end: str) -> None:
    block = "-----BEGIN RSA PRIVATE KEY-----\nDEK-Info: AES-128-CBC,00\n\nMIIEow+IBAAKC/==\n" + end
    assert REDACTOR.redact(f"a {block}").count("MIIE") == 0
    assert values(block) == [("secret", block)]


@pytest.mark.parametrize("text", ["4111111111111111", "0170 1234567", "0301234567"])
def test_a_bare_number_that_is_an_id_is_no_card_and_no_phone(text: str) -> None:
    assert values(text, is_id=True) == []


def test_ip_addresses_are_found_only_where_asked_for() -> None:
    with_ips = Redactor(Pseudonyms(KEY), with_ips=True)
    assert values("from 192.168.0.7, 2001:DB8::1 at 09:00:00", with_ips) == [
        ("ip", "192.168.0.7"),
        ("ip", "2001:db8::1"),
    ]
    assert values("1.2.3.4.5 300.1.1.1", with_ips) == []


def test_listed_names_are_found_as_whole_words_in_any_case_and_script() -> None:
    names = Redactor(Pseudonyms(KEY), names=listed_names(["Ana Müller", "Bo", "田中", "Ana"]))
    assert values("ANA  MÜLLER and Mu\u0308ller, Bob, bo's, Anabel", names) == [("name", "ana müller"), ("name", "bo")]
    assert values("田中さんです", names) == [("name", "田中")]


def test_a_report_is_read_through_its_escapes_and_the_pseudonym_shows() -> None:
    plain = REDACTOR.redact("ana_k@example.com")
    shown = plain.replace("<", "&lt;").replace(">", "&gt;")
    assert REDACTOR.redact(r"to ana\_k@example.com", form=Form.MARKDOWN) == f"to {shown}"
    assert REDACTOR.redact("<b>ana_k&#64;example.com</b>", form=Form.HTML) == f"<b>{shown}</b>"
    assert REDACTOR.redact("ana_k&lt;U+200B&gt;@example.com", form=Form.HTML) == shown
    assert REDACTOR.redact(shown, form=Form.HTML) == shown
