"""A5: `kept narrative`: a memory and the story it was written in, both ways."""

from tests.cli.shell import Shell


def test_what_is_remembered_while_a_story_is_under_way_belongs_to_it(shell: Shell) -> None:
    shell("remember", "Before the story")
    assert "No narrative is under way" in shell.fails("narrative", "show")
    shell("narrative", "begin", "checkout-rewrite")
    shell("remember", "The basket moves into its own service", "--kind", "decision")
    shell("remember", "Orders keep their numbers")
    assert "checkout-rewrite 2 memories, under way" in shell("narrative", "list")
    told = shell("narrative", "show")
    assert told.index("The basket moves") < told.index("Orders keep their numbers")
    assert "Before the story" not in told
    assert "has ended" in shell("narrative", "end")
    shell("remember", "After the story")
    assert shell.json("narrative", "show", "--of", "2")["id"] == "checkout-rewrite"
    assert len(shell.json("narrative", "show", "checkout-rewrite")["memories"]) == 2
    assert "not part of a narrative" in shell.fails("narrative", "show", "--of", "4")
    assert "No narrative is under way" in shell("narrative", "end")


def test_a_project_without_stories_says_how_to_begin_one(shell: Shell) -> None:
    assert "`kept narrative begin NAME`" in shell("narrative", "list")
