"""Words that open what is raised inside Spark: `execution.failures` recognises it through all that wraps it."""

from __future__ import annotations

__all__ = ["BAD_RECORD", "RAISED", "UNKNOWN_SCHEMA"]

BAD_RECORD = "HEADWATER_BAD_RECORD"
"""A message could not be decoded; behind it, JSON with where it is and what is wrong."""

RAISED = "HEADWATER_RAISED"
"""A row could not be written; behind it, a sentence."""

UNKNOWN_SCHEMA = "HEADWATER_UNKNOWN_SCHEMA"
"""A message names a schema that nobody has asked the registry for yet; behind it, its id."""
