from __future__ import annotations

import os
import re

import runyard
from tests.integration.server.api import Agent, Api


def test_health(api: Api) -> None:
    health = api.get("/health").json
    assert (health["status"], health["version"], health["pid"]) == ("ok", runyard.__version__, os.getpid())
    assert set(health["runs"]) == {"queued", "starting", "running", "succeeded", "failed", "cancelled"}


def test_metrics_are_prometheus_text(api: Api, agent: Agent) -> None:
    agent.start()
    api.get("/nothing")
    reply = api.get("/metrics")
    assert reply.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = reply.body.decode().splitlines()
    sample = re.compile(r'[a-z_]+\{([a-z]+="([^"\\\n]|\\.)*",?)+\} [0-9.e+]+')
    assert all(line.startswith("#") or sample.fullmatch(line) for line in lines)
    assert f'runyard_agents{{site="{agent.site}",state="alive"}} 1' in lines
    assert f'runyard_slots_total{{site="{agent.site}",kind="cpus"}} 4' in lines
    assert f'runyard_slots_free{{site="{agent.site}",kind="cpus"}} 0' in lines
    assert f'runyard_slots_total{{site="{agent.site}",kind="memory"}} {8 << 30}' in lines
    assert 'runyard_runs{state="running"} 1' in lines
    assert any(
        line.startswith('runyard_http_requests_total{method="POST",path="/agents/sync",status="200"}') for line in lines
    )
    assert any(line.startswith('runyard_http_requests_total{method="GET",path="other",status="404"}') for line in lines)


def test_docs_page_loads_nothing_from_outside(api: Api) -> None:
    public = api.as_(None)
    page = public.get("/docs")
    assert (page.status, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    parts = re.findall(r'(?:src|href)="([^"]+)"', page.body.decode())
    assert sorted(set(parts)) == ["docs/docs.css", "docs/docs.js", "openapi.json"]
    for part in parts:
        loaded = public.get(f"/{part}")
        assert loaded.status == 200
        assert not re.search(rb"(https?:)?//[a-z0-9.-]+\.[a-z]{2,}/", loaded.body), part
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "script-src 'self';" in policy and "unsafe" not in policy
    assert b"<script>" not in page.body and b"style=" not in page.body and b"onclick" not in page.body


def test_only_its_own_files_are_parts_of_the_page(api: Api) -> None:
    for name in ("docs.html", "app.py", "..%2F__init__.py", "%2e%2e"):
        assert api.get(f"/docs/{name}").status in (400, 404)


def test_the_root_leads_to_the_docs(api: Api) -> None:
    import http.client
    from urllib.parse import urlsplit

    connection = http.client.HTTPConnection(urlsplit(api.url).netloc, timeout=90)
    connection.request("GET", "/")
    response = connection.getresponse()
    assert (response.status, response.headers["Location"]) == (307, "/api/v1/docs")
    connection.close()


def test_every_answer_has_an_id_of_its_own(api: Api) -> None:
    numbers = {api.get("/me").headers["X-Request-Id"] for _ in range(5)}
    assert len(numbers) == 5
