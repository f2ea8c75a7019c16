"""Thousands of made-up requests against a real server: no answer of 5xx, and every answer as the document says.

    python -m tests.http.fuzz      the long version, about 22,000 requests in half an hour; the tests run a short one

The requests come from the server's own OpenAPI document, for the project that is served: a made-up project would end
each of them with "not found".
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.http.conftest import KEY, Server, serving

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


def fuzz(server: Server, examples: int, *, phases: str = "coverage,fuzzing", timeout_s: int = 3_600) -> tuple[int, str]:
    """Return how many requests were made, and the problems found; "" without any."""
    spec = server.ask("GET", "/api/v1/openapi.json").json
    for path, operations in list(spec["paths"].items()):
        if path.endswith("/events"):  # it never ends
            del spec["paths"][path]
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                if parameter["name"] == "project":
                    parameter["schema"] = {"type": "string", "enum": ["here"]}
                elif parameter["name"] == "ref":
                    parameter["schema"] = {"type": "string", "pattern": "^g?[1-9][0-9]{0,2}$"}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "openapi.json"
        file.write_text(json.dumps(spec), "utf-8")
        command = [sys.executable, "-m", "schemathesis.cli", "run", str(file), "--url", server.address]
        command += ["-H", f"Authorization: Bearer {KEY}", "--checks", CHECKS, "--no-color", "--continue-on-failure"]
        command += ["--max-examples", str(examples), "--phases", phases, "--generation-deterministic"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=timeout_s, check=False)
    made = re.search(r"([\d,]+) generated", done.stdout)
    number = int(made.group(1).replace(",", "")) if made else 0
    return number, "" if done.returncode == 0 else done.stdout[-6_000:] + done.stderr[-2_000:]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--examples", type=int, default=700)
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as server:
        number, found = fuzz(server, parser.parse_args().examples)
    print(f"{number} requests: {found or 'no problem'}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
