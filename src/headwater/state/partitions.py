"""Which state partition a key belongs to, from the 64-bit hash that every run stores.

The upper half of a hash is Spark's own `hash` of the key (of the group, for values that are remembered per group), so
the state partition, `pmod` of it, is the partition that Spark's shuffle brings the key to. State can be rewritten for
another number of partitions without hashing keys again, and all values of a group lie side by side in a run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headwater.state.columns import Ints

__all__ = ["hash_sql", "partition_of"]


def hash_sql(keys: Sequence[str], value: str = "") -> str:
    """Spark SQL of the stored hash of a key, or of a `value` in the group of that key. Names are quoted already."""
    if not keys and not value:
        return "0L"
    # Spark's own `hash` in the upper half, because its shuffle places rows by that: state and rows of a key must meet
    # in the same partition. The lower half is another function, or it would tell no two keys apart that the upper one
    # does not.
    upper = f"shiftleft(CAST(hash({', '.join(keys)}) AS BIGINT), 32)" if keys else "0L"
    return f"({upper} | (xxhash64({value or ', '.join(keys)}) & 4294967295L))"


def partition_of(hashes: Ints, partitions: int) -> Ints:
    """As Spark's `pmod(hash(keys), partitions)`."""
    numbers: Ints = np.mod(hashes >> 32, partitions)
    return numbers
