"""A scripted model: answers the providers' APIs on loopback, from a script that the prompt names.

Speaks Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Gemini generateContent, streamed or not.
Every request is recorded, so a test can see what an agent program really sent to its model.

`model.mark(steps)` returns the mark of a script, for the end of a prompt: hello <<#3>>. It has no words, so that a
memory finds nothing in it. A prompt that the model itself writes carries its script: <<[{"call": "note$"}]>>
  call   a pattern for the name of an offered tool (searched); `input` its arguments
  say    a text, the last step; a request with no script, or with no steps left, is answered "ok"
  usage  input tokens to report with this step (to make an agent compact by itself)
Rule: a script never changes, and there is no other state. The step is the number of tool rounds since the last user
text, so side requests (titles, summaries) and retries cannot shift it; a sub-agent gets its own script inside the
prompt of the call.
"""

import json
import re
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
_MARK = re.compile(r"<<#(\d+)>>")
SECRET_HEADERS = {"authorization", "x-api-key", "x-goog-api-key", "cookie"}


# ---- what a request asks for ----


def text_of(content: Any) -> str:
    """The plain text of a message's content, whatever the provider's shape; tool results are not text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(text_of, content)))
    if isinstance(content, dict) and content.get("type", "text") in ("text", "input_text"):
        return str(content.get("text") or "")
    return ""


def messages_of(body: Json) -> list[tuple[str, str, bool]]:
    """(role, text, is_tool_result) for each message, oldest first."""
    found = []
    for message in body.get("messages") or []:  # Anthropic, OpenAI Chat
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        is_result = message.get("role") == "tool" or any(
            isinstance(block, dict) and block.get("type") == "tool_result" for block in blocks
        )
        found.append((str(message.get("role")), text_of(content), is_result))
    items = body.get("input") or []
    for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:  # OpenAI Responses
        is_result = str(item.get("type", "")).endswith("_output")
        found.append((str(item.get("role", "assistant")), text_of(item.get("content")), is_result))
    for message in body.get("contents") or []:  # Gemini
        is_result = any("functionResponse" in part for part in message.get("parts", []))
        found.append((str(message.get("role", "user")), text_of(message.get("parts")), is_result))
    return found


def tool_names(tools: Any, namespace: str = "") -> list[tuple[str, str, str]]:
    """(namespace, name, kind) of every offered tool; Codex nests MCP tools in namespaces."""
    found = []
    for tool in tools or []:
        if not isinstance(tool, dict):
            continue
        if tool.get("type") == "namespace":
            found += tool_names(tool.get("tools"), str(tool.get("name")))
        elif "functionDeclarations" in tool:
            found += tool_names(tool["functionDeclarations"])
        else:
            name = tool.get("name") or (tool.get("function") or {}).get("name")
            if name:
                found.append((namespace, str(name), str(tool.get("type", "function"))))
    return found


def script_of(text: str) -> list[Json] | None:
    start = text.rfind("<<[")
    while start >= 0:
        try:
            steps, _ = json.JSONDecoder().raw_decode(text, start + 2)
            return list(steps)
        except ValueError:
            start = text.rfind("<<[", 0, start)
    return None


def next_step(body: Json, reply: Callable[[str], list[Json] | None] = script_of) -> Json:
    """What to answer: {"say": ..} or {"call": name, "namespace": .., "kind": .., "input": ..}, maybe with "usage".

    `reply` gives the script for a text; by default the one that stands in it.
    """
    if (schema := wanted_schema(body)) is not None:
        return {"say": json.dumps(example(schema))}
    tools = tool_names(body.get("tools"))
    rounds, was_result = 0, False
    for role, text, is_result in reversed(messages_of(body)):
        rounds += is_result and not was_result  # parallel results of one round count once
        was_result = is_result
        steps = reply(text) if role == "user" else None
        if steps is None:
            continue
        step = dict(steps[rounds]) if rounds < len(steps) else {"say": "ok"}
        if "call" not in step:
            return step
        for namespace, name, kind in tools:
            if re.search(step["call"], f"{namespace}{name}"):
                return {**step, "call": name, "namespace": namespace, "kind": kind, "input": step.get("input", {})}
        return {"say": f"no offered tool matches {step['call']}"} if tools else {"say": "ok"}
    return {"say": "ok"}


def example(schema: Json) -> Any:
    """The least value that fits a JSON schema: what a side request gets that insists on structured output."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = str(schema["type"][0] if isinstance(schema.get("type"), list) else schema.get("type", "object")).lower()
    if kind == "object":
        wanted = schema.get("required") or schema.get("properties", {})
        return {name: example(schema.get("properties", {}).get(name, {"type": "string"})) for name in wanted}
    return {"array": [], "string": "ok", "boolean": False, "null": None}.get(kind, schema.get("minimum", 1))


def wanted_schema(body: Json) -> Json | None:
    """The schema of a structured answer, if the request asks for one (Anthropic, Responses, Chat, Gemini)."""
    generation = body.get("generationConfig") or {}
    if generation.get("responseMimeType") == "application/json":
        return generation.get("responseJsonSchema") or generation.get("responseSchema") or {}
    for form in (
        (body.get("output_config") or {}).get("format"),
        (body.get("text") or {}).get("format"),
        body.get("response_format"),
    ):
        if form and form.get("type") == "json_schema":
            return (form.get("json_schema") or form).get("schema") or {}
    return None


# ---- how each provider says it ----


def anthropic(body: Json, step: Json, number: int) -> tuple[Json, list[Json]]:
    usage = {"input_tokens": step.get("usage", 10), "output_tokens": 5}
    if "call" in step:
        block = {"type": "tool_use", "id": f"toolu_{number:04}", "name": step["call"], "input": step["input"]}
        empty: Json = {**block, "input": {}}
        delta: Json = {"type": "input_json_delta", "partial_json": json.dumps(step["input"])}
        reason = "tool_use"
    else:
        block = {"type": "text", "text": step["say"]}
        empty, delta, reason = {"type": "text", "text": ""}, {"type": "text_delta", "text": step["say"]}, "end_turn"
    message = {"id": f"msg_{number:04}", "type": "message", "role": "assistant", "model": body.get("model", "fake")}
    whole = {**message, "content": [block], "stop_reason": reason, "stop_sequence": None, "usage": usage}
    start = {
        **message,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": 1},
    }
    return whole, [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]


def responses(body: Json, step: Json, number: int) -> tuple[Json, list[Json]]:
    if "call" in step:
        item: Json = {
            "type": "function_call",
            "id": f"fc_{number:04}",
            "call_id": f"call_{number:04}",
            "name": step["call"],
        }
        if step["kind"] == "custom":
            item |= {"type": "custom_tool_call", "input": step["input"]}
        else:
            item |= {"arguments": json.dumps(step["input"])}
        if step["namespace"]:
            item["namespace"] = step["namespace"]
    else:
        content = [{"type": "output_text", "text": step["say"], "annotations": []}]
        item = {
            "type": "message",
            "id": f"msg_{number:04}",
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
    tokens = step.get("usage", 10)
    usage = {"input_tokens": tokens, "output_tokens": 5, "total_tokens": tokens + 5}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    head = {"id": f"resp_{number:04}", "object": "response", "created_at": int(time.time()), "model": body.get("model")}
    whole = {**head, "status": "completed", "output": [item], "usage": usage}
    events: list[Json] = [
        {"type": "response.created", "response": {**head, "status": "in_progress", "output": []}},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**item, **({"content": []} if "content" in item else {})},
        },
    ]
    if "say" in step:
        delta = {"item_id": item["id"], "output_index": 0, "content_index": 0, "delta": step["say"]}
        events.append({"type": "response.output_text.delta", **delta})
    events += [
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    return whole, events


def chat(body: Json, step: Json, number: int) -> tuple[Json, list[Json]]:
    tokens = step.get("usage", 10)
    usage = {"prompt_tokens": tokens, "completion_tokens": 5, "total_tokens": tokens + 5}
    message: Json = {"role": "assistant", "content": step.get("say")}
    if "call" in step:
        function = {"name": step["call"], "arguments": json.dumps(step["input"])}
        message["tool_calls"] = [{"index": 0, "id": f"call_{number:04}", "type": "function", "function": function}]
    reason = "tool_calls" if "call" in step else "stop"
    head = {"id": f"chat_{number:04}", "created": int(time.time()), "model": body.get("model", "fake")}
    chunk = {**head, "object": "chat.completion.chunk"}
    whole = {**head, "object": "chat.completion", "usage": usage}
    whole["choices"] = [{"index": 0, "message": message, "finish_reason": reason}]
    return whole, [
        {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        {**chunk, "choices": [], "usage": usage},
    ]


def gemini(body: Json, step: Json, number: int) -> tuple[Json, list[Json]]:
    part = {"functionCall": {"name": step["call"], "args": step["input"]}} if "call" in step else {"text": step["say"]}
    tokens = step.get("usage", 10)
    usage = {"promptTokenCount": tokens, "candidatesTokenCount": 5, "totalTokenCount": tokens + 5}
    candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    whole = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "fake", "responseId": f"r{number}"}
    return whole, [whole]


PROVIDERS = [
    (r"/messages$", anthropic),
    (r"/responses$", responses),
    (r"/chat/completions$", chat),
    (r":(stream)?[gG]enerateContent$", gemini),
]


# ---- the server ----


class ScriptedModel(ThreadingHTTPServer):
    """`with ScriptedModel() as model:` serves until the block ends; `model.url`, `model.requests`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.requests: list[Json] = []
        self.reply: Callable[[str], list[Json] | None] = self.script_of
        self._scripts: list[list[Json]] = []
        self._lock = threading.Lock()

    def mark(self, steps: list[Json]) -> str:
        """Keep a script; return the mark that names it in a prompt."""
        with self._lock:
            self._scripts.append(steps)
            return f"<<#{len(self._scripts)}>>"

    def script_of(self, text: str) -> list[Json] | None:
        """Return the script that a text names, or that stands in it; the last one, if there are several."""
        marks = list(_MARK.finditer(text))
        carried = script_of(text[marks[-1].end() :] if marks else text)
        return self._scripts[int(marks[-1][1]) - 1] if marks and carried is None else carried

    def note(self, request: Json) -> int:
        with self._lock:
            self.requests.append(request)
            return len(self.requests)

    def turns(self, since: int = 0) -> list[Json]:
        """The bodies that were answered by the model and offered tools: the agent's own turns, no side requests."""
        return [r["body"] for r in self.requests[since:] if r["answered"] and tool_names(r["body"].get("tools"))]

    def __enter__(self) -> "ScriptedModel":
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ScriptedModel

    def do_HEAD(self) -> None:
        self._send(200, b"", "text/plain")

    def do_GET(self) -> None:
        self._handle({})

    def do_POST(self) -> None:
        raw = self._read()
        try:
            body = json.loads(raw)
        except ValueError:
            body = {"unreadable_bytes": len(raw)}
        self._handle(body if isinstance(body, dict) else {"list": body})

    def _read(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _handle(self, body: Json) -> None:
        path, _, _ = self.path.partition("?")
        speak = next(
            (speak for pattern, speak in PROVIDERS if self.command == "POST" and re.search(pattern, path)), None
        )
        headers = {k.lower(): "***" if k.lower() in SECRET_HEADERS else v for k, v in self.headers.items()}
        number = self.server.note(
            {
                "time": time.time(),
                "method": self.command,
                "path": self.path,
                "headers": headers,
                "body": body,
                "answered": bool(speak),
            }
        )
        if speak:
            whole, events = speak(body, next_step(body, self.server.reply), number)
            if body.get("stream") or "stream" in path.rpartition(":")[2]:
                self._send(200, self._sse(events, speak is chat).encode(), "text/event-stream")
            else:
                self._json(200, whole)
        elif re.search(r"count_?[tT]okens$", path):
            self._json(200, {"input_tokens": 10, "totalTokens": 10})
        elif re.search(r"/models$", path):
            self._json(
                200, {"object": "list", "data": [{"id": "fake", "object": "model", "type": "model"}], "models": []}
            )
        else:
            error = {"type": "not_found_error", "message": f"{path}: not served here"}
            self._json(404, {"type": "error", "error": error})

    @staticmethod
    def _sse(events: list[Json], ends_with_done: bool) -> str:
        lines = [(f"event: {e['type']}\n" if "type" in e else "") + f"data: {json.dumps(e)}\n\n" for e in events]
        return "".join(lines) + ("data: [DONE]\n\n" if ends_with_done else "")

    def _json(self, status: int, value: Json) -> None:
        self._send(status, json.dumps(value).encode(), "application/json")

    def _send(self, status: int, payload: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: object) -> None:
        pass
