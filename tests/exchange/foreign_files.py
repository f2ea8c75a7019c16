"""Files in the formats of other programs, as their programs write them; each also with many lines."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import apsw


class ForeignFile(NamedTuple):
    """A file of a format: its path, its content, what the importer should find, and the same with many statements."""

    format: str
    path: str
    content: str
    found: dict[str, str]  # text → kind
    many: Callable[[int], str]
    as_bytes: Callable[[str], bytes] = str.encode  # where the file is not text


CODEX_SUMMARY = """thread_id: 019e87c8
updated_at: 2026-06-02T10:03:10+00:00
cwd: /home/ann/app

# The gateway was moved

## Task 1: move the gateway

Outcome: success

Reusable knowledge:
"""
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
    "Discussed agent loop implementation": "summary",
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

CLAUDE_MEM = """
create table schema_versions (id integer primary key, version integer unique not null, applied_at text not null);
create table sdk_sessions (
  id integer primary key autoincrement, content_session_id text not null, memory_session_id text unique,
  project text not null, platform_source text not null default 'claude', user_prompt text, started_at text not null,
  started_at_epoch integer not null, completed_at text, completed_at_epoch integer, status text not null
);
create table observations (
  id integer primary key autoincrement, memory_session_id text not null, project text not null, text text,
  type text not null, title text, subtitle text, facts text, narrative text, concepts text, files_read text,
  files_modified text, prompt_number integer, discovery_tokens integer default 0, created_at text not null,
  created_at_epoch integer not null, merged_into_project text, agent_type text
);
create table session_summaries (
  id integer primary key autoincrement, memory_session_id text not null, project text not null, request text,
  investigated text, learned text, completed text, next_steps text, files_read text, files_edited text, notes text,
  prompt_number integer, created_at text not null, created_at_epoch integer not null
);
create table user_prompts (
  id integer primary key autoincrement, content_session_id text not null, prompt_number integer not null,
  prompt_text text not null, created_at text not null, created_at_epoch integer not null
);
"""
CLAUDE_MEM_AT = {"created_at": "2026-02-10T21:11:00.000Z", "created_at_epoch": 1_770_757_860_000}


def claude_mem_rows(number: int, project: str = "app") -> str:
    """The rows of claude-mem's database, each with its table, as lines of JSON."""
    session = {"content_session_id": "c1", "memory_session_id": "m1", "project": project, "status": "completed"}
    rows: list[dict[str, Any]] = [
        {"table": "sdk_sessions", **session, "started_at": "2026-02-10", "started_at_epoch": 1_770_757_000_000}
    ]
    of = {"memory_session_id": "m1", "project": project, **CLAUDE_MEM_AT}
    for n in range(number):
        facts = [f"Session {n} lives for 30 minutes", f"The cookie of shard {n} is signed"]
        about = {"title": f"Moved sessions to Redis {n}", "subtitle": "Logins survive a restart now"}
        lists = {"facts": facts, "concepts": ["how-it-works", "trade-off"], "files_modified": ["src/session.ts"]}
        encoded = {name: json.dumps(value) for name, value in lists.items()}
        rows.append({"table": "observations", "type": "decision", **about, **encoded, "narrative": "Long.", **of})
    older = {"table": "session_summaries", "request": "Make logins survive", "learned": "nothing yet", **of}
    newer = {**older, "learned": "Memory store loses sessions 0", "next_steps": "Load test"}
    prompt = {"content_session_id": "c1", "prompt_number": 1, "prompt_text": "Make logins survive", **CLAUDE_MEM_AT}
    return "\n".join(map(json.dumps, (*rows, older, newer, {"table": "user_prompts", **prompt})))


def insert_rows(connection: apsw.Connection, rows: str) -> None:
    for line in rows.split("\n"):
        row = json.loads(line)
        table = row.pop("table")
        marks = ", ".join("?" * len(row))
        connection.execute(f"insert into {table} ({', '.join(row)}) values ({marks})", tuple(row.values()))


def claude_mem_database(rows: str) -> bytes:
    """The bytes of a database with these rows."""
    if not rows.startswith("{"):
        return rows.encode()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "claude-mem.db"
        connection = apsw.Connection(str(file))
        connection.execute(CLAUDE_MEM)
        with connection:
            insert_rows(connection, rows)
        connection.close()
        return file.read_bytes()


FILES: dict[str, ForeignFile] = {
    one.format: one
    for one in (
        ForeignFile("openclaw", "workspace/MEMORY.md", MEMORY_MD, OPENCLAW, bullets),
        ForeignFile(
            "claude-memory",
            ".claude/projects/-work-app/memory/feedback_tests.md",
            "---\nname: tests\ndescription: How to test\nmetadata:\n  type: feedback\n---\n\nNever mock the database.\n"
            "\n**Why:** it hid a bug.\n",
            {"Never mock the database. Why: it hid a bug.": "preference"},
            bullets,
        ),
        ForeignFile(
            "qwen-memory",
            ".qwen/projects/-work-app/memory/project/queue.md",
            "---\nname: queue\ndescription: The queue\ntype: project\n---\n\nThe queue is called zebrafish.\n",
            {"The queue is called zebrafish.": "fact"},
            bullets,
        ),
        ForeignFile(
            "codex-memory",
            ".codex/memories/rollout_summaries/2026-06-02T10-03-10-aB3x-gateway.md",
            CODEX_SUMMARY + "- The gateway is restarted with make gateway.\n",
            {"The gateway is restarted with make gateway.": "fact"},
            lambda number: CODEX_SUMMARY + bullets(number).partition("\n\n")[2],
        ),
        ForeignFile(
            "gemini-memory",
            ".gemini/tmp/app/memory/MEMORY.md",
            "# Memory\n\n- The linter is ruff.\n- See build.md for the build.\n",
            {"The linter is ruff.": "fact"},
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
            {"We chose Fastify over Express in service 0 for its speed.": "decision"},
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
            "claude-mem",
            ".claude-mem/claude-mem.db",
            claude_mem_rows(1),
            {
                "Moved sessions to Redis 0. Logins survive a restart now": "decision",
                "Session 0 lives for 30 minutes": "decision",
                "The cookie of shard 0 is signed": "decision",
                "Asked: Make logins survive\nLearned: Memory store loses sessions 0\nNext: Load test": "summary",
            },
            claude_mem_rows,
            claude_mem_database,
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
