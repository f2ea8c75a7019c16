"""conflicts, resolve, alias, scan, allow, off, on: at the command line."""

from tests.cli.shell import Shell


def test_a_contradiction_is_shown_and_settled(shell: Shell) -> None:
    """C10, C22."""
    assert "No memories contradict" in shell("conflicts")
    shell("remember", "Always use Fastify for the public API server", "--kind", "decision")
    told = shell("remember", "Never use Fastify for the public API server", "--kind", "decision")
    assert "c1" in told
    shown = shell("conflicts")
    assert "c1 contradictory" in shown
    assert "[id:1] Always use Fastify" in shown
    (conflict,) = shell.json("conflicts")["conflicts"]
    assert (conflict["sides"], conflict["rule"]) == (["2", "1"], "denies it")  # the newer one first
    assert "denies it" in shown
    shell("forget", "1")
    refused = shell.fails("resolve", "c1", "--keep", "1")
    assert "Memory 1 is archived (forgotten)" in refused
    assert "kept restore 1" in refused
    shell("restore", "1")
    assert "[id:1] stays" in shell("resolve", "c1", "--keep", "1")
    assert "No memories contradict" in shell("conflicts")
    assert "settled" in shell("conflicts", "--all")
    assert shell.json("list")["memories"][0]["ref"] == "1"


def test_aliases(shell: Shell) -> None:
    """C13."""
    shell("remember", "Harbor is the name of the staging cluster")
    assert "No memory" in shell("recall", "playground")
    assert "playground also finds harbor" in shell("alias", "add", "playground", "harbor")
    assert "[id:1]" in shell("recall", "playground")
    assert shell.json("alias", "list")["aliases"]["playground"] == ["harbor"]
    shell("alias", "remove", "playground")
    assert "kept alias list" in shell.fails("alias", "remove", "playground")


def test_pausing(shell: Shell) -> None:
    shell("remember", "one")
    assert "Paused in this project" in shell("off")
    assert "The project is paused since 20" in shell("status")
    assert "until `kept on`: nothing is captured or injected." in shell("status")
    assert shell.json("status")["paused"][0]["session"] is None
    assert "on again" in shell("on")
    assert "not paused" in shell("on")
    assert "session s1" in shell("off", "--session", "s1")


def test_scanning_and_allowing(shell: Shell) -> None:
    """C24."""
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    told = shell("remember", f"The example key is {key}")
    assert key not in told
    assert "No secrets are stored" in shell("scan")
    assert "This needs confirmation: Store a value of 40 characters" in shell.fails("allow", key)
    shell("allow", key, "--note", "from the docs", "--yes")
    shell("remember", f"The key in the docs is {key}")
    assert key in shell("show", "2")
    shell("undo", "2")
    found = shell("scan")
    assert "[id:2]" in found
    assert key not in found
    assert ": removed" in shell("scan", "--fix", "--yes")
    assert key not in shell("show", "2")
