"""The batch protocol: what a job has promised, what it has done, and where that is written. No Spark, no Arrow.

    locations, storage     where a checkpoint is, and what is asked of the files there
    local, disk            ... in a directory
    objects, cache         ... in an object store, with copies on this host
    storage_retries        ... again, if the storage does not answer
    records, entries       what the log says: claim, intent, commit
    log, checkpoint        reading it; claims, recovery and garbage
    batches                one numbered batch after the other; its attempts
    batch_ids              what an exactly-once sink remembers of its batches
    inspect                looking at a checkpoint from outside

The commit is the only truth: a file that no kept commit names is garbage, a batch without a commit has not happened.
"""
