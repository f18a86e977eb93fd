"""'scan.bad-records' = 'dead-letter': bad keys and values of several formats arrive whole, and headers say why; and so
do messages whose rows come too late.

The query reads each table twice, for different columns: a message is bad, and kept, once all the same.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from headwater.errors import BadRecordError, KafkaUnavailableError
from headwater.options.session import SessionOptions
from headwater.session import Session
from headwater.testing import CaseRunner
from headwater.testing.kafka import Kafka, Record

DEEP = b'{"id":5,"n":' + b"[" * 5000 + b"]" * 5000 + b"}"
MESSAGES = {
    "json": [
        Record("json", b'{"id":1}', b'{"id":1,"n":1}'),
        Record("json", b'{"id":2}', b'{"id":2,"n":', headers=(("trace", b"\x00\xff"),)),
        Record("json", b"poison", b'{"id":3,"n":3}'),
        Record("json", b'{"id":4}', b'{"id":4,"n":"\xff\xfe"}'),
        Record("json", b'{"id":5}', DEEP),
    ],
    "avro": [Record("avro", None, b"\x02\x02\x02\x02"), Record("avro", None, b"\x02\xff\xff\xff")],
    "changes": [
        Record("changes", None, b'{"op":"c","after":{"id":7,"n":7}}'),
        Record("changes", None, b'{"op":"u","after":{"id":7,"n":8}}'),
    ],
}
FORMATS = {
    "json": "'key.format'='json', 'key.fields'='id', 'value.format'='json', 'value.fields-include'='EXCEPT_KEY'",
    "avro": "'format' = 'avro'",
    "changes": "'format' = 'debezium-json'",
}
# Of each topic: the values that are bad, and a part of what is said about them.
BAD = {
    "json": {1: "json (value): ", 2: "json (key): ", 3: "json (value): ", 4: "json (value): "},
    "avro": {1: "avro (value): Failed to deserialize Avro record"},
    "changes": {1: 'debezium-json (value): The "before" field of UPDATE message is null'},
}


def test_bad_messages_are_kept(case_runner: CaseRunner, tmp_path: Path) -> None:
    kafka = case_runner.kafka()
    names = {name: f"{name}-{tmp_path.name}" for name in (*MESSAGES, "dead")}
    kafka.create(dict.fromkeys(names.values(), 1))
    for topic, records in MESSAGES.items():
        kafka.produce([Record(names[topic], r.key, r.value, headers=r.headers) for r in records])
    session = Session(str(tmp_path / "state"), settings=SessionOptions())
    session.get_spark = case_runner.spark
    session.sql(script(kafka.bootstrap_servers, names))
    for job in session.jobs:
        job.wait()
    assert [job.progress().bad_records for job in session.jobs] == [len(BAD[topic]) for topic in MESSAGES]
    shown = {message.place: message for job in session.jobs for _, message in job.left_out}
    assert shown.keys() == {f"{names[topic]}:0 offset {offset}" for topic, bad in BAD.items() for offset in bad}
    broken = shown[f"{names['json']}:0 offset 1"]
    assert (broken.kind, broken.payload) == ("bad", '{"id":2,"n":')
    assert BAD["json"][1] in broken.problem
    assert shown[f"{names['json']}:0 offset 4"].payload == f"{DEEP[:500].decode()}…"
    assert shown[f"{names['avro']}:0 offset 1"].payload == "02 ff ff ff"
    letters = read(kafka, names["dead"])
    assert len(letters) == sum(map(len, BAD.values()))
    for topic, bad in BAD.items():
        for offset, reason in bad.items():
            check(letters, names[topic], offset, MESSAGES[topic][offset], reason)


ODD = """
CREATE TABLE `a ``b``.'{mode}' "c"` (`it's.id` INT, `n ``x`` "y"` INT, `r.o` ROW<`c.d` INT, `e'f` INT>,
  `from 'p'.` INT METADATA FROM 'partition' VIRTUAL, `more ``n``` AS `n ``x`` "y"` + 1)
WITH ('connector' = 'kafka', 'topic' = '{source}', 'properties.bootstrap.servers' = '{servers}', 'key.format' = 'json',
  'key.fields' = 'it''s.id', 'value.format' = 'json', 'value.fields-include' = 'EXCEPT_KEY',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'scan.bad-records' = '{mode}'{dead});
CREATE TABLE `out-{mode}` (i INT, n INT, c INT, e INT, p INT, m INT) WITH ('connector' = 'kafka', 'topic' = '{sink}',
  'properties.bootstrap.servers' = '{servers}', 'format' = 'csv');
INSERT INTO `out-{mode}` SELECT `it's.id`, `n ``x`` "y"`, `r.o`.`c.d`, `r.o`.`e'f`, `from 'p'.`, `more ``n```
FROM `a ``b``.'{mode}' "c"`;
"""
ODD_MESSAGES = [
    (b'{"it\'s.id":1}', b'{"n `x` \\"y\\"":10,"r.o":{"c.d":2,"e\'f":3}}'),
    (b'{"it\'s.id":2}', b'{"n `x` \\"y\\"":"many"}'),
    (b"poison", b'{"n `x` \\"y\\"":30}'),
    (b'{"it\'s.id":4}', b'{"r.o":{"c.d":"'),
    (b'{"it\'s.id":5}', b'{"n `x` \\"y\\"":50,"r.o":null}'),
]


def test_bad_messages_of_tables_with_odd_names(case_runner: CaseRunner, tmp_path: Path) -> None:
    """Names of tables, columns and fields with backquotes, quotes and dots."""
    kafka, modes = case_runner.kafka(), ("skip", "dead-letter")
    names = {name: f"{name}-{tmp_path.name}" for name in (*modes, "odd", "dead")}
    kafka.create(dict.fromkeys(names.values(), 1))
    sent = [Record(names["odd"], key, value) for key, value in ODD_MESSAGES]
    kafka.produce(sent)
    session = Session(str(tmp_path / "state"), settings=SessionOptions())
    session.get_spark = case_runner.spark
    for mode in modes:
        dead = f", 'scan.dead-letter.topic' = '{names['dead']}'" if mode == "dead-letter" else ""
        servers = kafka.bootstrap_servers
        session.sql(ODD.format(mode=mode, source=names["odd"], sink=names[mode], servers=servers, dead=dead))
    for job in session.jobs:
        job.wait()
    assert [job.progress().bad_records for job in session.jobs] == [3, 3]
    for mode in modes:
        assert [record.value for record in read(kafka, names[mode])] == [b"1,10,2,3,0,11", b"5,50,,,0,51"]
    letters = read(kafka, names["dead"])
    assert len(letters) == 3
    for offset, reason in {1: "json (value): ", 2: "json (key): ", 3: "json (value): "}.items():
        check(letters, names["odd"], offset, sent[offset], reason, tables=("`a ``b``.'dead-letter' \"c\"`",))


LATE = """
CREATE TABLE {side} (id INT, who STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'kafka',
  'topic' = '{topic}', 'properties.bootstrap.servers' = '{servers}', 'format' = 'json',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'scan.dead-letter.topic' = '{late}');
"""
JOINED = """
CREATE TABLE pairs (b INT, a INT) WITH ('connector' = 'blackhole');
INSERT INTO pairs SELECT b.id, a.id FROM (SELECT * FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '1' HOUR))) b
JOIN (SELECT * FROM TABLE(TUMBLE(TABLE asks, DESCRIPTOR(ts), INTERVAL '1' HOUR))) a
ON b.who = a.who AND b.window_start = a.window_start AND b.window_end = a.window_end;
"""
NEAR = """
CREATE TABLE pairs (b INT, a INT) WITH ('connector' = 'blackhole');
INSERT INTO pairs SELECT b.id, a.id FROM bids AS b
JOIN asks AS a ON b.who = a.who AND a.ts BETWEEN b.ts AND b.ts + INTERVAL '1' HOUR;
"""


@pytest.mark.parametrize("query", [JOINED, NEAR])
def test_messages_of_late_rows_are_kept(case_runner: CaseRunner, tmp_path: Path, query: str) -> None:
    """Those of both sides of a join of windows, or within an interval. The last message of each is late: its hour has
    passed."""
    kafka = case_runner.kafka()
    names = {name: f"{name}-{tmp_path.name}" for name in ("bids", "asks", "late")}
    kafka.create(dict.fromkeys(names.values(), 1))
    sent = {}
    for side in ("bids", "asks"):
        times = ("10:00:00", "12:00:00", "10:30:00")
        values = [f'{{"id":{n},"who":"a","ts":"2024-01-01 {t}"}}'.encode() for n, t in enumerate(times)]
        sent[side] = [Record(names[side], b"k%d" % n, value, headers=(("n", b"1"),)) for n, value in enumerate(values)]
        kafka.produce(sent[side])
    session = Session(str(tmp_path / "state"), settings=SessionOptions())
    session.get_spark = case_runner.spark
    for side in ("bids", "asks"):
        session.sql(LATE.format(side=side, topic=names[side], servers=kafka.bootstrap_servers, late=names["late"]))
    session.sql(query)
    (job,) = session.jobs
    job.wait()
    assert (job.progress().late_rows, job.progress().bad_records) == (2, 0)
    letters = read(kafka, names["late"])
    assert len(letters) == 2
    for side in ("bids", "asks"):
        check(letters, names[side], 2, sent[side][2], "It came behind the watermark.", "LateRow", (side,))


def check(
    letters: list[Record],
    topic: str,
    offset: int,
    original: Record,
    reason: str,
    error: str = "BadRecordError",
    tables: Collection[str] = MESSAGES,
) -> None:
    place = (("headwater.topic", topic.encode()), ("headwater.offset", str(offset).encode()))
    [letter] = [r for r in letters if set(place) <= set(r.headers)]
    assert (letter.key, letter.value) == (original.key, original.value)
    assert letter.headers[: len(original.headers)] == original.headers
    told = dict(letter.headers)
    assert told["headwater.partition"] == b"0"
    assert told["headwater.error.class"].decode() == error
    assert reason in told["headwater.error"].decode()
    assert told["headwater.table"].decode() in tables


def script(servers: str, names: dict[str, str]) -> str:
    return "\n".join(
        f"CREATE TABLE {topic} (id INT, n INT) WITH ('connector' = 'kafka', 'topic' = '{names[topic]}', "
        f"'properties.bootstrap.servers' = '{servers}', {FORMATS[topic]}, 'scan.startup.mode' = 'earliest-offset', "
        "'scan.bounded.mode' = 'latest-offset', 'scan.bad-records' = 'dead-letter', "
        f"'scan.dead-letter.topic' = '{names['dead']}');"
        f"CREATE TABLE {topic}_out (id INT, n INT) WITH ('connector' = 'blackhole');"
        f"INSERT INTO {topic}_out SELECT id, n FROM {topic} UNION ALL SELECT id, 0 FROM {topic};"
        for topic in MESSAGES
    )


def read(kafka: Kafka, topic: str) -> list[Record]:
    return kafka.read(topic, {}, {p: end for (_, p), end in kafka.ends({topic: 1}).items()})


@pytest.mark.parametrize(
    ("option", "error", "text"),
    [
        ("'scan.bad-records' = 'fail'", BadRecordError, "set 'scan.bad-records' to 'skip' or 'dead-letter'."),
        (
            "'scan.bad-records' = 'dead-letter', 'scan.dead-letter.topic' = 'nowhere-to-be-found'",
            KafkaUnavailableError,
            "nowhere-to-be-found",
        ),
    ],
)
def test_a_job_stops(case_runner: CaseRunner, tmp_path: Path, option: str, error: type[Exception], text: str) -> None:
    kafka, topic = case_runner.kafka(), f"bad-{tmp_path.name}"
    kafka.create({topic: 1})
    kafka.produce([Record(topic, None, b"\x01")])
    session = Session(str(tmp_path / "state"), settings=SessionOptions())
    session.get_spark = case_runner.spark
    session.sql(
        f"CREATE TABLE t (id INT) WITH ('connector' = 'kafka', 'topic' = '{topic}', 'format' = 'raw', {option}, "
        f"'properties.bootstrap.servers' = '{kafka.bootstrap_servers}', 'scan.startup.mode' = 'earliest-offset');"
        "CREATE TABLE out (id INT) WITH ('connector' = 'blackhole'); INSERT INTO out SELECT id FROM t;"
    )
    with pytest.raises(error) as raised:
        session.jobs[0].wait()
    assert text in str(raised.value)
