"""Everything that `make bench` measures, and the groups that `--only` takes."""

from __future__ import annotations

from changelog_scripts import CHANGELOG
from changelog_topics import TOPICS as CHANGELOG_TOPICS
from latency import LATENCIES
from nexmark_scripts import NEXMARK
from nexmark_topic import NEXMARK_TOPICS
from scripts import Script
from workloads import WORKLOADS, Workload

__all__ = ["GROUPS", "JOBS", "PARTS", "SCRIPTS", "TOPICS", "parts_of"]

SCRIPTS = {**CHANGELOG, **NEXMARK}
TOPICS = {**CHANGELOG_TOPICS, **NEXMARK_TOPICS}
JOBS: dict[str, Workload | Script] = {**WORKLOADS, **SCRIPTS}

PARTS = (*JOBS, *(f"latency-{name}" for name in LATENCIES))
GROUPS = {
    "aggregations": tuple(WORKLOADS),
    "joins": ("join", "temporal-join"),
    "ranks": ("top-3", "deduplicate"),
    "windows": ("tumble",),
    "nexmark": tuple(NEXMARK),
    "latency": tuple(f"latency-{name}" for name in LATENCIES),
}


def parts_of(names: list[str]) -> list[str]:
    """Parts and groups as parts, each once, in the order in which they are measured."""
    wanted = {part for name in names for part in GROUPS.get(name, (name,))}
    return [part for part in PARTS if part in wanted]
