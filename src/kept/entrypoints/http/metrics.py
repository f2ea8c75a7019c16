"""Figures for Prometheus at /metrics: how many requests, how long they took, how much is stored."""

from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from kept.entrypoints.http.doors import Asking, Doors
from kept.model import GLOBAL

router = APIRouter(include_in_schema=False)
SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)


class Figures:
    """The figures of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter("kept_requests", "Requests.", ("route", "status"), registry=self.registry)
        self._seconds = Histogram(
            "kept_request_seconds", "How long a request took.", ("route",), registry=self.registry, buckets=SECONDS
        )

    def note(self, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def look(self, statuses: Iterable[tuple[str, dict[str, Any]]]) -> bytes:
        """The requests so far, and the counts of these projects as they are now. Nothing is kept for the next look:
        that one may be of another key.
        """
        projects = CollectorRegistry()
        memories = Gauge("kept_memories", "Memories.", ("project", "shelf"), registry=projects)
        for project, status in statuses:
            for space in status["spaces"]:
                for shelf, number in space["memories"].items() if space["space"] != GLOBAL else ():
                    memories.labels(project, shelf).set(number)
        return generate_latest(self.registry) + generate_latest(projects)


@router.get("/metrics")
def metrics(request: Request, key: Asking) -> Response:
    """The figures, for the projects that the key opens."""
    doors: Doors = request.app.state.doors
    figures: Figures = request.app.state.figures
    statuses = ((one.name, status) for one in doors.projects(key) if (status := doors.glance(one, key)) is not None)
    return Response(figures.look(statuses), media_type=CONTENT_TYPE_LATEST)
