"""Messages as lines and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.testing.case import Avro, Message, Payload
from headwater.testing.messages import identity, parse_message, parse_payload, render_message, render_payload

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=2), max_leaves=4
)
MISLEADING = [b"null", b" ", b"a => b", b"#x", b"@partition=1 x", b"hex:00", b'text:"x"', b"avro{}", b"a\nb", b"=>"]
payloads: st.SearchStrategy[Payload] = (
    st.none()
    | st.binary()
    | st.text().map(str.encode)
    | st.sampled_from(MISLEADING)
    | st.builds(Avro, st.dictionaries(st.text(), json_values, max_size=3))
)
messages = st.builds(
    Message,
    payloads,
    payloads,
    st.none() | st.integers(0, 9),
    st.none() | st.integers(0, 1 << 41),
    st.lists(st.tuples(st.from_regex(r"[a-z.]{1,5}", fullmatch=True), st.binary(max_size=5)), max_size=2).map(tuple),
)


@given(messages)
def test_a_rendered_message_is_read_as_the_same(message: Message) -> None:
    line = render_message(message)
    assert "\n" not in line
    assert len(line.splitlines()) == 1
    assert parse_message(line) == message


@pytest.mark.parametrize(
    ("text", "payload"),
    [
        ("null", None),
        ("hex:00 ff", b"\x00\xff"),
        ("hex:", b""),
        ('text:"null"', b"null"),
        ('text:" a\\n"', b" a\n"),
        ('avro{"a": [1, null]}', Avro({"a": [1, None]})),
        ('{"a": "ü"}', '{"a": "ü"}'.encode()),
        ("a,b;c", b"a,b;c"),
        ("avro", b"avro"),
    ],
)
def test_forms_of_a_payload(text: str, payload: Payload) -> None:
    assert parse_payload(text) == payload


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (None, "null"),
        (b"null", 'text:"null"'),
        (b"", 'text:""'),
        (b"\xff", "hex:ff"),
        (b"a b", "a b"),
        (b" a", 'text:" a"'),
        (b"a\tb", 'text:"a\\tb"'),
        (Avro({"a": "ü"}), 'avro{"a":"ü"}'),
    ],
)
def test_how_a_payload_is_shown(payload: Payload, text: str) -> None:
    assert render_payload(payload) == text


def test_fields_of_avro_have_no_order() -> None:
    assert identity(Avro({"a": 1, "b": 2})) == identity(Avro({"b": 2, "a": 1}))
    assert identity(Avro({"a": 1})) != identity(Avro({"a": 2}))
