"""What exactly-once costs: the same rows from topic to topic with each delivery guarantee, on one broker and one Spark.

    python benchmarks/delivery.py [ROWS] [RUNS]

Runs alternate, so that a machine that is busy for a while is busy for both. A run is timed from the start of the job to
its end; rows are counted by a reader that takes only what is committed. The ratio is that of the best runs.
"""

from __future__ import annotations

import sys
import tempfile
import time
import uuid
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from headwater import Session
from headwater.broker import Broker
from headwater.testing.kafka import Kafka

PARTITIONS = 4
GUARANTEES = ("at-least-once", "exactly-once")
SCRIPT = """
SET 'pipeline.name' = '${sink}';
CREATE TABLE IF NOT EXISTS payments (payment_id BIGINT, account STRING, amount BIGINT, paid_at TIMESTAMP(3)) WITH (
  'connector' = 'kafka', 'topic' = 'payments', 'properties.bootstrap.servers' = '${kafka}', 'format' = 'json',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset'
);
CREATE TABLE sink (account STRING, payment_id BIGINT, amount BIGINT, paid_at TIMESTAMP(3)) WITH (
  'connector' = 'kafka', 'topic' = '${sink}', 'properties.bootstrap.servers' = '${kafka}', 'format' = 'json',
  'key.format' = 'raw', 'key.fields' = 'account', 'sink.delivery-guarantee' = '${guarantee}'
);
INSERT INTO sink SELECT account, payment_id, amount * 2, paid_at FROM payments WHERE amount >= 0;
"""


def main(rows: int, runs: int) -> None:
    place = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    with Broker.start(place / "broker", port=0, die_with_parent=True) as broker:
        kafka = Kafka(broker.bootstrap_servers)
        kafka.create({"payments": PARTITIONS})
        _fill(broker.bootstrap_servers, rows)
        seconds: dict[str, list[float]] = {guarantee: [] for guarantee in GUARANTEES}
        with Session(str(place / "checkpoints"), master="local[2]") as session:
            for number in range(runs + 1):
                for guarantee in GUARANTEES:
                    took = _run(session, kafka, guarantee, rows)
                    if number:  # the first one warms up
                        seconds[guarantee].append(took)
        kafka.close()
    for guarantee in GUARANTEES:
        shown = ", ".join(f"{took:.2f}" for took in seconds[guarantee])
        print(f"{guarantee:14} {rows / min(seconds[guarantee]):>10,.0f} rows/s   ({shown} s)")
    print(f"exactly-once / at-least-once: {min(seconds[GUARANTEES[0]]) / min(seconds[GUARANTEES[1]]):.2f}")


def _run(session: Session, kafka: Kafka, guarantee: str, rows: int) -> float:
    sink = f"{guarantee}-{uuid.uuid4().hex[:8]}"
    kafka.create({sink: PARTITIONS})
    session.variables = {"kafka": kafka.bootstrap_servers, "sink": sink, "guarantee": guarantee}
    begin = time.monotonic()
    session.sql(SCRIPT)
    session.wait()
    took = time.monotonic() - begin
    session.sql("DROP TABLE sink;")
    found = _committed(kafka.bootstrap_servers, sink)
    if found != rows:
        raise RuntimeError(f"{guarantee}: {rows} rows were read and {found} were written.")
    kafka.delete([sink])
    return took


def _fill(servers: str, rows: int) -> None:
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "queue.buffering.max.messages": 2_000_000})
    text = b'{"payment_id":%d,"account":"a%d","amount":%d,"paid_at":"2024-01-01 00:00:00"}'
    for number in range(rows):
        while True:
            try:
                producer.produce(
                    "payments", text % (number, number % 1000, number % 100), partition=number % PARTITIONS
                )
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(120):
        raise RuntimeError("The broker did not take all rows.")


def _committed(servers: str, topic: str) -> int:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "delivery",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, p, 0) for p in range(PARTITIONS)])
    count, ended = 0, 0
    while ended < PARTITIONS:
        for message in consumer.consume(10_000, timeout=1.0):
            problem = message.error()
            if problem is None:
                count += 1
            elif problem.code() == KafkaError._PARTITION_EOF:
                ended += 1
    consumer.close()
    return count


if __name__ == "__main__":
    main(*(int(argument) for argument in [*sys.argv[1:], "1000000", "3"][:2]))
