"""The runner itself: what it says when a case does not hold, what it rewrites, and jobs that are really killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.testing import CaseFailure, CaseRunner, ReplayMode, parse_case, read_case, run_cases

HEAD = """\
topic source
topic sink

sql
CREATE TABLE source (id STRING, n INT, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = '${source}', 'properties.bootstrap.servers' = '${kafka}',
  'key.format' = 'raw', 'value.format' = 'csv');
CREATE TABLE sink (id STRING, n INT, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = '${sink}', 'properties.bootstrap.servers' = '${kafka}',
  'key.format' = 'raw', 'value.format' = 'csv');
INSERT INTO sink SELECT id, SUM(n) FROM source GROUP BY id;

"""
INPUT = "produce source\na => a,1\nb => b,2\n\n"


def failure(case_runner: CaseRunner, text: str, mode: ReplayMode = ReplayMode.AS_WRITTEN) -> str:
    with pytest.raises(CaseFailure) as raised:
        case_runner.play(parse_case(text, "x.case"), mode)
    return str(raised.value)


def test_a_difference_is_shown_with_its_place(case_runner: CaseRunner) -> None:
    shown = failure(case_runner, HEAD + INPUT + "expect sink per-key\na => a,1\nb => b,3\n")
    assert shown.splitlines() == [
        "x.case:17: expect sink per-key (as-written)",
        "  a => a,1",
        "- b => b,3",
        "+ b => b,2",
    ]


def test_more_than_was_expected_is_a_failure(case_runner: CaseRunner) -> None:
    text = HEAD + INPUT + "expect sink per-key\na => a,1\nb => b,2\n\nproduce source\na => a,5\n"
    assert "Topic 'sink' has more messages than were expected:\n+ a => a,5" in failure(case_runner, text)


def test_a_wrong_outcome_is_seen_in_every_replay_mode(case_runner: CaseRunner) -> None:
    text = HEAD + INPUT + "expect sink per-key\na => a,1\nb => b,3\n"
    for mode in (ReplayMode.ONE_BATCH, ReplayMode.ONE_BY_ONE, ReplayMode.KILLS):
        shown = failure(case_runner, text, mode)
        assert f"({mode.value})" in shown
        assert "Topic 'sink' amounts to something else:" in shown
        assert "- b => b,3\n+ b => b,2" in shown


def test_refused_sql_does_not_hide_what_runs(case_runner: CaseRunner) -> None:
    refused = "sql\nCREATE TABLE t (id INT) WITH ('connector' = 'nope');\n\nerror create contains nope\n\n"
    text = HEAD + INPUT + refused + "expect sink per-key\na => a,1\nb => b,2\n"
    for mode in (ReplayMode.AS_WRITTEN, ReplayMode.ONE_BATCH):
        case_runner.play(parse_case(text, "x.case"), mode)


def test_a_failing_job_is_a_failure(case_runner: CaseRunner) -> None:
    shown = failure(case_runner, HEAD + "produce source\na => a,x\n\nexpect sink exact\n")
    assert "Job 'sink' failed:" in shown
    assert "could not be decoded as csv" in shown


def test_refused_sql_is_a_failure_unless_it_was_expected(case_runner: CaseRunner) -> None:
    refused = "sql\nCREATE TABLE t (id INT) WITH ('connector' = 'nope');\n\n"
    assert "Could not find any factory for identifier 'nope'" in failure(case_runner, refused)
    case_runner.play(parse_case(refused + "error create contains identifier 'nope'\n"))
    assert "was to be refused at insert" in failure(case_runner, refused + "error insert contains nope\n")
    taken = refused.replace("nope", "print") + "error create contains x\n"
    assert "was to be refused at create, but it was taken" in failure(case_runner, taken)
    assert "- elsewhere" in failure(case_runner, refused + "error create contains elsewhere\n")


def test_a_marked_case_must_fail(case_runner: CaseRunner) -> None:
    fails = "marker: notyet some day\n" + HEAD + INPUT + "expect sink exact\n"
    case_runner.play(parse_case(fails, "x.case"))
    passes = "marker: notyet some day\n" + HEAD + INPUT + "expect sink any-order\na => a,1\nb => b,2\n"
    assert "it works now; remove the marker 'notyet some day'" in failure(case_runner, passes)


def test_rewriting_puts_what_came_into_the_file(case_runner: CaseRunner, tmp_path: Path) -> None:
    path = tmp_path / "x.case"
    tail = "\ntable sink\nnothing | 1\n\nplan\nwrong\n\n# the end\n"
    path.write_text(HEAD + INPUT + "expect sink per-key\n# goes\nb => b,3\n" + tail, encoding="utf-8")
    assert case_runner.rewrite(read_case(path))
    text = path.read_text(encoding="utf-8")
    assert "expect sink per-key\nb => b,2\na => a,1\n\ntable sink\na | 1\nb | 2\n\nplan\nWrite sink" in text
    assert text.startswith(HEAD)
    assert text.endswith("\n# the end\n")
    assert not case_runner.rewrite(read_case(path))
    case_runner.play(read_case(path), ReplayMode.AS_WRITTEN)


def test_many_files_are_reported_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "a.case").write_text("sql\nSHOW TABLES;\n", encoding="utf-8")
    (tmp_path / "b.case").write_text("sql\nSHOW TABELS;\n", encoding="utf-8")
    (tmp_path / "c.case").write_text("squeal\n", encoding="utf-8")
    (tmp_path / "d.case").write_text("marker: notyet later\nsql\nSHOW TABELS;\n", encoding="utf-8")
    heard: list[str] = []
    reports = run_cases([tmp_path], report=lambda report: heard.append(report.verdict))
    assert heard == [report.verdict for report in reports] == ["passed", "failed", "failed", "not yet"]
    assert "TABELS" in reports[1].text
    assert "'squeal' is not a word of case files. Did you mean 'sql'?" in reports[2].text


@pytest.mark.long
@pytest.mark.timeout(300)
def test_isolated_jobs_are_really_killed(case_runner: CaseRunner) -> None:
    text = HEAD + INPUT + "expect sink per-key\na => a,1\nb => b,2\n\nrestart kill\n\nproduce source\na => null\n\n"
    text += "expect sink per-key\na => null\n\ntable sink\nb | 2\n"
    with CaseRunner(case_runner.kafka().bootstrap_servers, isolated=True) as isolated:
        isolated.play(parse_case(text, "x.case"))
