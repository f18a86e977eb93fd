"""What benchmarks compute beside the engines: expected results, delays, growth, plots."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from xml.dom import minidom

import generate
import latency
import soak_report
import soak_samples
from collected import collect
from engines import Batch
from line_chart import Panel, render_chart
from report import Measured, Report

ROWS = 2_000


def input_rows(workload: str) -> list[dict[str, object]]:
    generator = generate.GENERATORS[workload]
    columns = (generator.columns(ROWS, partition) for partition in range(generate.PARTITIONS))
    return [json.loads(value or b"") for part in columns for _, value in generator.messages(part)]


def test_a_copy_is_expected_as_its_query_writes_it() -> None:
    written = [
        {
            "payment_id": row["payment_id"],
            "account": str(row["account"]).upper(),
            "cents": int(str(row["amount"])) * 100 + 1,
            "kind": "large" if int(str(row["amount"])) >= 5_000 else "small",
            "paid_at": row["paid_at"],
        }
        for row in input_rows("copy")
        if int(str(row["amount"])) >= 1_000 and row["account"] != "a0"
    ]
    messages = [json.dumps(row, separators=(",", ":")).encode() for row in written]
    assert generate.expected("copy", ROWS) == generate.log_table(messages)


def test_filtered_pageviews_are_expected_as_their_query_counts_them() -> None:
    users: dict[str, list[object]] = {}
    for row in input_rows("pageviews-where"):
        if int(str(row["page_id"])) < 900 and row["user_region"] != "r0":
            users.setdefault(str(row["user_region"]), []).append(row["user_id"])
    counted = {region: (len(found), len(set(found))) for region, found in users.items()}
    assert generate.expected("pageviews-where", ROWS) == counted


def test_a_delay_ends_with_the_first_result_that_includes_the_row() -> None:
    rows = latency._Rows()
    rows.sent["a"] += [1.0, 2.0, 3.0]
    rows.arrived("a", 2, 5.0)
    rows.arrived("a", 1, 6.0)  # a retraction, before the next result
    assert rows.waiting == 1
    rows.arrived("a", 3, 7.0)
    assert rows.delays == [(1.0, 4.0), (2.0, 3.0), (3.0, 4.0)]


def test_balances_count_the_changes_of_a_region() -> None:
    balances: dict[bytes, tuple[str, int]] = {}
    changes: dict[str, int] = {}
    for sent in islice(latency._balances(), 30_000):
        row = json.loads(sent.value)
        assert sent.key is not None
        balances[sent.key] = (row["region"], row["balance"])
        changes[sent.group] = changes.get(sent.group, 0) + 1
    sums: dict[str, int] = {}
    for region, balance in balances.values():
        sums[region] = sums.get(region, 0) + balance
    assert sums == changes


def soak(growth: int) -> soak_report.Soak:
    found = soak_report.Soak(minutes=10, rate=1)
    for number in range(121):
        held = soak_samples.Held(1, 10**9, 10**9 + number * growth, 300, 50, 20)
        found.samples.append(soak_samples.Sample(number / 12, dict.fromkeys(soak_samples.ROLES, held), {"state": 9}))
    found.batches["totals"] = [(number / 60, 0.2) for number in range(600)]
    found.differences["totals"] = 0
    return found


def test_growth_is_told_from_noise() -> None:
    assert soak_report.verdict(soak(10**4)).endswith("Nothing of ours grows after warm-up.")
    growing = [figure.name for figure in soak_report.figures(soak(10**7)) if figure.grows and figure.ours]
    assert growing == [f"{role}: memory that is no mapped file" for role in soak_samples.ROLES[:-1]]


def test_a_chart_is_well_formed() -> None:
    chart = render_chart([Panel("A < B & C", {"one": [(0, 0), (1, 5)], "none": []})], 1, [(0.5, "fault")])
    assert minidom.parseString(chart).documentElement.tagName == "svg"


def test_parts_of_several_runs_add_up(tmp_path: Path) -> None:
    kept = tmp_path / "parts.json"
    slow, quick = Measured([2.0], [3.0], {"flink": 1}), Measured([1.0], [3.0], {"flink": 1})
    found = latency.Latency(0.2, 0.4, 10, (Batch(5.0, 0.2, 0.1),))
    collect(kept, Report(10, 1, {"copy": slow}, {}))
    collect(kept, Report(10, 1, {"totals": slow}, {"log": {"Headwater": found}}))
    whole = collect(kept, Report(10, 1, {"copy": quick}, {}))
    assert whole == Report(10, 1, {"totals": slow, "copy": quick}, {"log": {"Headwater": found}})
    assert list(whole.workloads) == ["totals", "copy"]
    assert collect(kept, Report(10, 2, {"copy": quick}, {})) == Report(10, 2, {"copy": quick}, {})
