"""A22: `kept export`."""

import msgspec

from kept.model import Memory
from tests.cli.shell import Shell


def test_everything_comes_out_and_can_be_read_back(shell: Shell) -> None:
    """A22: one line a memory, lossless; what was forgotten stays in."""
    shell("remember", "Use Fastify, not Express", "--kind", "decision", "--tag", "api", "--file", "src/a.ts")
    shell("remember", "Something to forget")
    shell("remember", "The release is in May", "--topic", "release")
    shell("remember", "The release is in July, after the audit", "--topic", "release")
    shell("forget", "2")
    lines = shell("export").splitlines()
    memories = [msgspec.json.decode(line, type=Memory) for line in lines]
    assert [memory.ref for memory in memories] == ["1", "4"]
    assert memories[0].tags == ("api",)
    assert memories[0].files == ("src/a.ts",)
    assert len(shell("export", "--archived").splitlines()) == 3
    assert [one["ref"] for one in shell.json("export")["memories"]] == ["1", "4"]
