"""A checkpoint copy that is older than what the sink has is refused before any row is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from headwater.broker import Broker
from headwater.errors import IncompatibleCheckpointError, StaleCheckpointError
from headwater.protocol.batch_ids import BatchId
from headwater.testing import CaseRunner
from headwater.testing.kafka import Kafka
from sink_lab import NO_BATCH, SinkLab

DDL = """
CREATE TABLE sink (id INT) WITH ('connector' = 'kafka', 'topic' = '%s', 'format' = 'csv',
  'properties.bootstrap.servers' = '${kafka}', 'sink.delivery-guarantee' = 'exactly-once')
"""
PARTITIONS = 2


@pytest.fixture
def kafka(broker: Broker) -> Iterator[Kafka]:
    client = Kafka(broker.bootstrap_servers)
    yield client
    client.close()


class Job:
    """Batches of 100 rows; a run knows only what its checkpoint says."""

    def __init__(self, lab: SinkLab, topic: str) -> None:
        self.lab = lab
        self.topic = topic

    def write(self, batch: BatchId, first: int) -> int:
        return self.lab.write(self.lab.rows("id INT", [(i,) for i in range(first, first + 100)]), batch)

    def restart(self, committed: BatchId | None, pending: BatchId | None = None, *, rerouted: bool = False) -> None:
        self.lab.sink.close()
        self.lab.open()
        self.lab.start(committed or NO_BATCH, pending, rerouted=rerouted)

    def ids(self) -> list[int]:
        return sorted(int(record.value or b"") for record in self.lab.messages(self.topic, PARTITIONS))


@pytest.fixture
def job(case_runner: CaseRunner, kafka: Kafka, unique_topic: Callable[[str], str]) -> Iterator[Job]:
    topic = unique_topic("older")
    kafka.create({topic: PARTITIONS})
    made = Job(SinkLab(case_runner.spark(), kafka, DDL % topic), topic)
    yield made
    made.lab.sink.close()


FIRST, SECOND, THIRD = BatchId(1, "offsets 0-100"), BatchId(2, "offsets 100-200"), BatchId(3, "offsets 200-300")
OTHER = BatchId(2, "offsets 100-300")


def test_a_checkpoint_that_is_one_batch_old_is_refused(job: Job) -> None:
    """The batch that the copy would call 2 has other rows than the one the sink has under this number."""
    job.lab.start()
    assert job.write(FIRST, 0) == 100
    assert job.write(SECOND, 100) == 100
    with pytest.raises(StaleCheckpointError, match="an older copy: the sink has a batch 2 that it knows") as refused:
        job.restart(FIRST)
    assert "The checkpoint ends with batch 1." in str(refused.value)
    with pytest.raises(StaleCheckpointError):  # likewise if the copy was just going to read further than the original
        job.restart(FIRST, OTHER)
    assert job.ids() == list(range(200))


def test_it_is_refused_by_the_writers_too(job: Job) -> None:
    """As if another run went on after this one had started."""
    job.lab.start()
    assert job.write(FIRST, 0) == 100
    job.restart(FIRST)
    assert job.write(SECOND, 100) == 100
    with pytest.raises(Exception, match="The checkpoint is an older copy: the sink has a batch 2"):
        job.write(OTHER, 200)
    assert job.ids() == list(range(200))


def test_a_last_batch_with_other_content_is_refused(job: Job) -> None:
    """Two copies went on from the same batch: their numbers agree, what they stand for does not."""
    job.lab.start()
    assert job.write(FIRST, 0) == 100
    assert job.write(SECOND, 100) == 100
    with pytest.raises(StaleCheckpointError):
        job.restart(OTHER)


def test_the_pending_batch_itself_is_not_written_again(job: Job) -> None:
    job.lab.start()
    assert job.write(FIRST, 0) == 100
    job.restart(None, FIRST)
    assert job.write(FIRST, 0) == 0
    assert job.write(SECOND, 100) == 100
    job.restart(SECOND)
    assert job.write(THIRD, 200) == 100
    assert job.ids() == list(range(300))


def test_a_batch_after_the_pending_one_is_refused(job: Job) -> None:
    job.lab.start()
    assert job.write(FIRST, 0) == 100
    assert job.write(SECOND, 100) == 100
    with pytest.raises(StaleCheckpointError, match="a batch 2"):
        job.restart(None, FIRST)
    assert job.ids() == list(range(200))


def test_a_pending_batch_takes_another_route_only_if_nothing_of_it_is_written(job: Job) -> None:
    job.lab.start()
    assert job.write(FIRST, 0) == 100
    job.restart(FIRST, SECOND, rerouted=True)
    assert job.write(SECOND, 100) == 100
    with pytest.raises(IncompatibleCheckpointError, match="Batch 2 was written in part by another query"):
        job.restart(FIRST, SECOND, rerouted=True)
