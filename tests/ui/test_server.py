"""Who may ask the server for what, and what programs are told: headers, tokens, health, metrics."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from page_lab import jobs_of, shop
from prometheus_client.parser import text_string_to_metric_families

import headwater.ui
from headwater.control.history import BOUNDS
from headwater.control.monitor import Monitor
from headwater.errors import SetupError
from headwater.execution.job import Job
from headwater.ui.graph import Graph, graph_of
from headwater.ui.metrics import METRICS, metrics_text
from headwater.ui.server import PageServer


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: str


class Client:
    def __init__(self, server: PageServer) -> None:
        self.server = server
        self.cookie = {"Cookie": f"headwater-{server.port}={server.token}"}

    def ask(self, path: str, method: str = "GET", **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=10)
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return Answer(answer.status, dict(answer.getheaders()), body)

    def api(self, path: str) -> dict[str, object]:
        answer = self.ask(path, **self.cookie)
        assert answer.status == 200, answer
        found: dict[str, object] = json.loads(answer.body)
        return found


@pytest.fixture(scope="module")
def an_hour() -> tuple[Monitor, list[Job]]:
    return shop('a "title"\\ of\ntwo lines')


@pytest.fixture
def client(an_hour: tuple[Monitor, list[Job]], monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    server = PageServer(an_hour[0], 0)
    yield Client(server)
    monkeypatch.setattr("headwater.ui.server._LAST_LOOK_SECONDS", 0)  # nobody asks once more
    server.close()


def test_a_page_that_is_open_sees_how_the_run_has_ended(an_hour: tuple[Monitor, list[Job]]) -> None:
    server = PageServer(an_hour[0], 0)
    page = Client(server)
    page.api("/api/state")
    closing = threading.Thread(target=server.close)
    closing.start()
    assert page.api("/api/state")["run"]
    closing.join()


PRIVATE = ["/", "/api/state", "/api/jobs/totals", "/api/jobs/totals?since=1"]


@pytest.mark.parametrize("path", PRIVATE)
def test_nobody_gets_in_without_the_token(client: Client, path: str) -> None:
    for cookie in ("", f"headwater-{client.server.port}=wrong", "headwater-1=x", ";=;"):
        answer = client.ask(path, Cookie=cookie)
        assert (answer.status, client.server.token in answer.body) == (401, False)
    assert client.ask("/?token=wrong").status == 401
    assert client.ask(path, **client.cookie).status == 200


def test_the_token_becomes_a_cookie_and_leaves_the_address(client: Client) -> None:
    answer = client.ask(f"/?token={client.server.token}")
    assert (answer.status, answer.headers["Location"]) == (303, "/")
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith(f"headwater-{client.server.port}={client.server.token};")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))


@pytest.mark.parametrize("path", [*PRIVATE, "/metrics", "/healthz", "/static/page.js", "/nowhere"])
def test_another_host_name_is_refused(client: Client, path: str) -> None:
    """A page elsewhere could make its own name point to this machine."""
    for host in ("evil.example", f"evil.example:{client.server.port}", "127.0.0.1.evil.example", ""):
        assert client.ask(path, Host=host, **client.cookie).status == 421
    assert client.ask("/healthz", Host="localhost:9999").status in (200, 503), "the port of a tunnel"


@pytest.mark.parametrize("path", [*PRIVATE, "/metrics", "/healthz", "/static/page.js", "/nowhere"])
def test_every_answer_has_a_strict_policy(client: Client, path: str) -> None:
    headers = client.ask(path, Origin="http://evil.example", **client.cookie).headers
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert not any(name.lower().startswith("access-control") for name in headers), "no CORS"


def test_a_stop_needs_cookie_and_header(client: Client, an_hour: tuple[Monitor, list[Job]]) -> None:
    token, busy = client.server.token, an_hour[1][0]
    path = "/api/jobs/totals/stop"
    assert client.ask(path, "POST").status == 403
    assert client.ask(path, "POST", **client.cookie).status == 403
    assert client.ask(path, "POST", X_Headwater_Token=token).status == 403
    assert client.ask(path, "POST", X_Headwater_Token="wrong", **client.cookie).status == 403
    assert client.ask(path, "POST", Host="evil.example", X_Headwater_Token=token, **client.cookie).status == 421
    assert client.ask(path, **client.cookie).status == 404, "not by GET"
    assert not busy.stopping.is_set()
    assert client.ask("/api/jobs/nosuch/stop", "POST", X_Headwater_Token=token, **client.cookie).status == 404
    assert client.ask(path, "POST", X_Headwater_Token=token, **client.cookie).status == 202
    assert busy.stopping.is_set()


def test_what_the_page_is_told(client: Client) -> None:
    state = client.api("/api/state")
    assert "token" not in json.dumps(state), "the address of the page holds it"
    run, events = state["run"], state["events"]
    assert isinstance(run, dict)
    assert isinstance(events, list)
    assert [(job["name"], job["status"]) for job in run["jobs"]] == [
        ("totals", "running"), ("visits", "running"), ("everything", "failed"),
    ]  # fmt: skip
    last = events[-1]["number"]
    assert client.api(f"/api/state?event={last}")["events"] == []
    job = client.api("/api/jobs/totals")
    samples = job["samples"]
    assert isinstance(samples, list)
    assert 700 < len(samples) <= 722
    since = samples[-3]["time"]
    assert client.api(f"/api/jobs/totals?since={since}")["samples"] == samples[-3:]
    assert client.ask("/api/jobs/nosuch", **client.cookie).status == 404


def test_a_path_that_is_not_a_file_of_the_page(client: Client) -> None:
    for path in ("/static/../server.py", "/static/page.html", "/static/%2e%2e/server.py", "/static/", "//etc/passwd"):
        assert client.ask(path, **client.cookie).status == 404


def test_nothing_of_the_page_comes_from_elsewhere() -> None:
    static = Path(headwater.ui.__file__).parent / "static"
    for file in static.iterdir():
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text, file
        assert "https://" not in text, file
        assert "innerHTML" not in text, file
        assert " style=" not in text, file


def test_health(an_hour: tuple[Monitor, list[Job]], client: Client) -> None:
    answer = client.ask("/healthz")
    assert (answer.status, json.loads(answer.body)["jobs"]["everything"]) == (503, "failed")
    monitor = Monitor()
    server = PageServer(monitor, 0)
    other = Client(server)
    assert (other.ask("/healthz").status, other.ask("/readyz").status) == (200, 503), "nothing has started yet"
    job = jobs_of("CREATE TABLE a (x INT) WITH ('connector' = 'blackhole'); INSERT INTO a VALUES (1);")[0]
    monitor.add(job)
    job.on_batch = monitor.saw
    for status, health, ready in (("running", 200, 200), ("retrying", 200, 503), ("stopped", 200, 200)):
        job.report(status=status)
        assert (other.ask("/healthz").status, other.ask("/readyz").status) == (health, ready), status
    server.close()


def test_a_port_in_use_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(SetupError, match="cannot listen on port"):
            PageServer(Monitor(), taken.getsockname()[1])
    first, second = PageServer(Monitor()), PageServer(Monitor())
    assert first.port != second.port
    first.close()
    second.close()


def test_metrics_are_what_prometheus_reads(client: Client, an_hour: tuple[Monitor, list[Job]]) -> None:
    answer = client.ask("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    families = {family.name: family for family in text_string_to_metric_families(answer.body)}
    assert {metric.name.removesuffix("_total") for metric in METRICS} <= families.keys()
    assert all(family.documentation for family in families.values())
    value = {(s.name, *sorted(s.labels.items())): s.value for family in families.values() for s in family.samples}
    totals = ("job", "totals")
    assert value["headwater_job_rows_read_total", totals] == an_hour[1][0].reported.rows_in
    assert value["headwater_job_status", ("job", "everything"), ("status", "failed")] == 1
    assert value["headwater_job_status", ("job", "everything"), ("status", "running")] == 0
    assert value["headwater_job_position", totals, ("partition", "0"), ("topic", "orders")] == 918_221 + 1199 * 1000
    assert value["headwater_job_batch_seconds_count", totals] == 1199
    assert value["headwater_job_batch_seconds_bucket", totals, ("le", "+Inf")] == 1199
    counts = [value["headwater_job_batch_seconds_bucket", totals, ("le", f"{bound:g}")] for bound in BOUNDS]
    assert counts == sorted(counts)
    (info,) = families["headwater_info"].samples
    assert info.labels["title"] == 'a "title"\\ of\ntwo lines'


def test_every_metric_is_documented() -> None:
    documented = (Path(__file__).parents[2] / "docs" / "monitoring.md").read_text(encoding="utf-8")
    found = {line.split()[2] for line in metrics_text(Monitor()).splitlines() if line.startswith("# TYPE")}
    assert [name for name in sorted(found) if f"`{name}`" not in documented] == []
    dashboard = (Path(__file__).parents[2] / "examples" / "grafana.json").read_text(encoding="utf-8")
    expressions = [target["expr"] for panel in json.loads(dashboard)["panels"] for target in panel.get("targets", [])]
    assert len(expressions) > 8
    for expression in expressions:
        assert any(name in expression for name in found), expression


def crossings(graph: Graph) -> int:
    """Of arrows between neighbouring layers."""
    place = {box.id: (box.layer, box.place) for box in graph.boxes}
    pieces = []
    for arrow in graph.arrows:
        way = [place[arrow.start], *arrow.via, place[arrow.end]]
        assert [layer for layer, _ in way] == list(range(way[0][0], way[-1][0] + 1)), "one step a layer"
        pieces += list(pairwise(way))
    return sum(
        a[0] == c[0] and (a[1] - c[1]) * (b[1] - d[1]) < 0 for (a, b) in pieces for (c, d) in pieces
    ) // 2  # fmt: skip


def test_a_plan_is_laid_out_without_crossings(an_hour: tuple[Monitor, list[Job]]) -> None:
    small, _, large = [graph_of(job.plan) for job in an_hour[1]]
    assert [box.kind for box in small.boxes][:1] == ["Scan"]
    assert small.layers == len(small.boxes), "a chain"
    assert len(large.boxes) >= 20
    assert crossings(large) == 0
    taken = [(box.layer, box.place) for box in large.boxes]
    assert len(set(taken)) == len(taken)
    assert all(0.5 <= box.place <= large.breadth - 0.5 for box in large.boxes)
    aggregates = [box for box in large.boxes if box.kind == "Aggregate"]
    assert {box.operator for box in aggregates} == {"aggregate-1", "aggregate-2", "aggregate-3"}
    assert all(box.state for box in aggregates)
