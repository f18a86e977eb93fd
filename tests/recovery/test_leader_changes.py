"""Brokers of a cluster stop and come back, one after the other: partitions, groups and transactions get other leaders
in the middle of batches. Every row is in the topic once, and the counts of a job with state are right."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker_cluster import BrokerCluster
from copy_job import CopyJob
from processes import await_progress

from headwater.testing.kafka import Kafka

ROWS = 150_000
BATCH = 1_000
BATCHES_BETWEEN = 3

pytestmark = pytest.mark.long


@pytest.mark.timeout(900)
def test_every_row_is_there_once_after_leader_changes(tmp_path: Path) -> None:
    with BrokerCluster(tmp_path / "cluster") as cluster:
        kafka = Kafka(cluster.bootstrap_servers)
        copy = CopyJob(kafka, kafka, ("source", "sink"), ROWS, tmp_path, ", 'sink.parallelism' = '2'")
        copy.create()
        checkpoint = copy.checkpoint
        faults = [(cluster.stop, 2), (cluster.kill, 3), (cluster.stop, 1), (cluster.kill, 2)]
        with copy.running(BATCH) as job:
            for fault, node in faults:
                wanted = checkpoint.batch + BATCHES_BETWEEN
                await_progress(job, checkpoint, lambda wanted=wanted: checkpoint.batch >= wanted)
                fault(node)
                # Without this broker, too: two of three copies are enough to go on.
                wanted = checkpoint.batch + BATCHES_BETWEEN
                await_progress(job, checkpoint, lambda wanted=wanted: checkpoint.batch >= wanted)
                cluster.start(node)
            assert job.poll() is None, "all was written before the last broker came back"
        copy.finish()
        assert copy.differences() == {}
        assert copy.miscounted() == {}
        kafka.close()
