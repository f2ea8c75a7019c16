"""conflicts, resolve, alias, scan, allow, off, on: at the command line."""

from tests.cli.shell import Shell


def test_a_contradiction_is_shown_and_settled(shell: Shell) -> None:
    """C10, C22."""
    assert "No memories contradict" in shell("review", "conflicts")
    shell("remember", "Always use Fastify for the public API server", "--kind", "decision")
    told = shell("remember", "Never use Fastify for the public API server", "--kind", "decision")
    assert "c1" in told
    shown = shell("review", "conflicts")
    assert "c1 contradictory" in shown
    assert "[id:1] Always use Fastify" in shown
    (conflict,) = shell.json("review", "conflicts")["conflicts"]
    assert (conflict["sides"], conflict["rule"]) == (["2", "1"], "denies it")  # the newer one first
    assert "denies it" in shown
    shell("forget", "1")
    refused = shell.fails("review", "resolve", "c1", "--keep", "1")
    assert "Memory 1 is archived (forgotten)" in refused
    assert "kept restore 1" in refused
    shell("restore", "1")
    assert "[id:1] stays" in shell("review", "resolve", "c1", "--keep", "1")
    assert "No memories contradict" in shell("review", "conflicts")
    assert "settled" in shell("review", "conflicts", "--all")
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
    assert "Paused in this project" in shell("pause")
    assert "The project is paused since 20" in shell("status")
    assert "until `kept resume`: nothing is captured or injected." in shell("status")
    assert shell.json("status")["paused"][0]["session"] is None
    assert "on again" in shell("resume")
    assert "not paused" in shell("resume")
    assert "session s1" in shell("pause", "--session", "s1")


def test_scanning_and_allowing(shell: Shell) -> None:
    """C24."""
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    told = shell("remember", f"The example key is {key}")
    assert key not in told
    assert "No secrets are stored" in shell("secrets", "scan")
    assert "This needs confirmation: Store a value of 40 characters" in shell.fails("secrets", "allow", key)
    shell("secrets", "allow", key, "--note", "from the docs", "--yes")
    shell("remember", f"The key in the docs is {key}")
    assert key in shell("show", "2")
    shell("undo", "2")
    found = shell("secrets", "scan")
    assert "[id:2]" in found
    assert key not in found
    assert ": removed" in shell("secrets", "scan", "--fix", "--yes")
    assert key not in shell("show", "2")


def test_removing_secrets_asks_only_where_there_are_some(shell: Shell) -> None:
    shell("remember", "Harbor is staging")
    assert shell("secrets", "scan", "--fix") == "No secrets are stored here.\n"


def test_alias_list_shows_ones_own_words_and_all_when_asked(shell: Shell) -> None:
    assert shell("alias", "list").startswith("No alias was added here. `kept alias list --all`")
    shell("alias", "add", "gateway", "api")
    assert shell("alias", "list").splitlines()[0].startswith("gateway → ")
    assert set(shell.json("alias", "list")["aliases"]) == {"gateway"}
    assert len(shell.json("alias", "list", "--all")["aliases"]) > 100
    assert "login" in shell.json("alias", "list", "auth")["aliases"]["auth"]
    assert shell("alias", "list", "pelican").startswith("pelican finds only itself.")
