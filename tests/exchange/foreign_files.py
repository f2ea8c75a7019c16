"""Files in the formats of other programs, as their programs write them; each also with many lines."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple


class ForeignFile(NamedTuple):
    """A file of a format: its path, its content, what the importer should find, and the same with many statements."""

    format: str
    path: str
    content: str
    found: dict[str, str]  # text → kind
    many: Callable[[int], str]


MEMORY_MD = """# Agent Memory

## Key Decisions
- 2026-02-01: Chose SQLite over PostgreSQL for local-first architecture
- 2026-02-03: API uses Fastify, not Express

## User Preferences
- Prefers concise responses
- Editors:
  - VSCode for TypeScript
  - vim for everything else

A paragraph of two lines
is one statement.

## Session Summaries
### 2026-02-05
- Discussed agent loop implementation
"""
OPENCLAW = {
    "Chose SQLite over PostgreSQL for local-first architecture": "decision",
    "API uses Fastify, not Express": "decision",
    "Prefers concise responses": "preference",
    "Editors: VSCode for TypeScript": "preference",
    "Editors: vim for everything else": "preference",
    "A paragraph of two lines is one statement.": "preference",
    "Discussed agent loop implementation": "fact",
}


def bullets(number: int) -> str:
    return "# Notes\n\n" + "".join(f"- The module {n} caches {n * 7} rows\n" for n in range(number))


def praxis_entry(n: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"6f1c1c9e-0000-4000-8000-{n:012d}",
        "fingerprint": f"{n:016x}",
        "content": f"The build of package {n} needs Node 22",
        "category": "warning",
        "importance": 0.6,
        "status": "confirmed",
        "confidence": 0.8,
        "source": {"sessionId": "sess-1", "agentId": "claude-code"},
        "filePaths": ["package.json"],
        "tags": ["build"],
        "accessCount": 4,
        "lastAccessedAt": 1_770_000_000_000,
        "createdAt": 1_769_000_000_000,
        "updatedAt": 1_769_500_000_000,
        **fields,
    }


def praxis_store(*entries: dict[str, Any], **more: Any) -> str:
    metadata = {
        "createdAt": 1_769_000_000_000,
        "lastCompactedAt": 0,
        "totalPromotions": 1,
        "totalEvictions": 0,
        "totalAccesses": 4,
        "autoMemoryEnabled": True,
        "configPreset": "balanced",
    }
    return json.dumps(
        {"version": 1, "entries": list(entries), "aliases": {}, "conflicts": [], "metadata": metadata, **more}
    )


PRAXIS = praxis_store(
    praxis_entry(1),
    praxis_entry(2, content="Always use pnpm for the web client", category="decision"),
    praxis_entry(3, content="Never use pnpm for the web client", category="decision"),
    aliases={"auth": ["login", "signin"]},
    conflicts=[
        {
            "entryA": praxis_entry(2)["id"],
            "entryB": praxis_entry(3)["id"],
            "conflictType": "contradictory",
            "detectedAt": 1_769_600_000_000,
        }
    ],
)
PRAXIS_SESSION = json.dumps(
    {
        "version": 1,
        "sessionId": "sess-7",
        "agentId": "codex",
        "findings": [
            {
                "id": "f1",
                "fingerprint": "ab",
                "content": "The tests need a running Redis",
                "category": "discovery",
                "importance": 0.5,
                "confidence": 0.7,
                "promotedToProjectMemory": False,
            }
        ],
        "summary": "Looked at the failing tests.",
        "createdAt": 1_769_000_000_000,
        "finalizedAt": 1_769_000_900_000,
    }
)


def items(number: int) -> str:
    return json.dumps(
        [
            {
                "id": f"item_{n}",
                "type": "decision",
                "title": "Use Fastify for API",
                "content": f"We chose Fastify over Express in service {n} for its speed.",
                "sourceFile": "docs/Architecture.md",
                "lineNumber": 45,
                "confidence": 0.9,
                "extractedAt": "2026-02-05T10:00:00Z",
            }
            for n in range(number)
        ]
    )


def engine_items(number: int) -> str:
    item = {
        "kind": "decision",
        "source": "project/web",
        "timestamp": "2026-01-05T10:00:00",
        "tags": ["project", "decision", "db"],
        "importance": 0.9,
        "token_cost": 4,
    }
    return json.dumps(
        {
            "items": {
                f"decision-{n}": {
                    "context_item_id": f"decision-{n}",
                    **item,
                    "payload": {"decision": f"Table {n} is sharded by tenant"},
                }
                for n in range(number)
            }
        }
    )


def graph(number: int) -> str:
    lines: list[dict[str, Any]] = [
        {
            "type": "entity",
            "name": f"Service{n}",
            "entityType": "service",
            "observations": [f"listens on port {8000 + n}"],
        }
        for n in range(number)
    ]
    lines.append({"type": "relation", "from": "Service0", "to": "Service1", "relationType": "calls"})
    return "".join(json.dumps(line) + "\n" for line in lines)


def mem0_export(number: int) -> str:
    return json.dumps(
        {
            "results": [
                {
                    "id": f"m{n}",
                    "memory": f"Likes the colour number {n}",
                    "user_id": "alice",
                    "agent_id": "helper",
                    "categories": ["colours"],
                    "created_at": "2026-01-02T03:04:05-08:00",
                }
                for n in range(number)
            ]
        }
    )


BASIC_NOTE = """---
title: Coffee Brewing
type: note
permalink: notes/coffee
tags:
- coffee
---

# Coffee Brewing

## Observations
- [method] Pour over highlights subtle flavours #brewing
- [decision] We buy beans from the market

## Relations
- relates_to [[Coffee Beans]]
"""

FILES: dict[str, ForeignFile] = {
    one.format: one
    for one in (
        ForeignFile("openclaw", "workspace/MEMORY.md", MEMORY_MD, OPENCLAW, bullets),
        ForeignFile(
            "claude-memory",
            ".claude/projects/-work-app/memory/feedback_tests.md",
            "---\nname: Tests\ndescription: Run the tests with make test\n---\n\nNever mock the database.\n",
            {"Run the tests with make test": "fact", "Never mock the database.": "fact"},
            bullets,
        ),
        ForeignFile(
            "agents-md",
            "repo/AGENTS.md",
            "# Guide\n\n## Commands\n\n- Build with `make build`\n\n## Style\n\nUse tabs in Go files.\n",
            {"Build with `make build`": "convention", "Use tabs in Go files.": "convention"},
            bullets,
        ),
        ForeignFile(
            "praxis",
            "memory/project.json",
            PRAXIS,
            {
                "The build of package 1 needs Node 22": "warning",
                "Always use pnpm for the web client": "decision",
                "Never use pnpm for the web client": "decision",
            },
            lambda number: praxis_store(*(praxis_entry(n) for n in range(number))),
        ),
        ForeignFile(
            "brain",
            "project/items.json",
            items(1),
            {"Use Fastify for API: We chose Fastify over Express in service 0 for its speed.": "decision"},
            items,
        ),
        ForeignFile(
            "agent-engine",
            "web/memory.json",
            engine_items(1),
            {"Table 0 is sharded by tenant": "decision"},
            engine_items,
        ),
        ForeignFile(
            "server-memory",
            "memory.jsonl",
            graph(2),
            {
                "Service0: listens on port 8000": "fact",
                "Service1: listens on port 8001": "fact",
                "Service0 calls Service1": "fact",
            },
            graph,
        ),
        ForeignFile("mem0", "mem0.json", mem0_export(1), {"Likes the colour number 0": "fact"}, mem0_export),
        ForeignFile(
            "basic-memory",
            "notes/coffee.md",
            BASIC_NOTE,
            {
                "Pour over highlights subtle flavours #brewing": "fact",
                "We buy beans from the market": "decision",
                "relates_to Coffee Beans": "fact",
            },
            lambda number: "---\ntitle: T\npermalink: t\n---\n" + bullets(number),
        ),
        ForeignFile(
            "markdown",
            "vault/day.md",
            "The release train leaves on Thursday.\n",
            {"The release train leaves on Thursday.": "fact"},
            bullets,
        ),
    )
}
