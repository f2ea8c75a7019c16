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


def test_undo_after_a_narrative_began_or_ended_says_so_and_leaves_every_memory_alone(shell: Shell) -> None:
    shell("remember", "Before the story")
    shell("narrative", "begin", "checkout-rewrite")
    said = shell.fails("undo")
    assert "The last change was the begin of the narrative checkout-rewrite" in said
    assert "`kept narrative end` ends it. `kept undo 1` undoes the change before it (remember)." in said
    assert "Before the story" in shell("list")
    shell("remember", "In the story")
    shell("undo")
    assert "In the story" not in shell("list")
    shell("narrative", "end")
    said = shell.fails("undo")
    assert "the end of the narrative checkout-rewrite" in said
    assert "`kept narrative begin checkout-rewrite` goes on with it." in said
    assert "Before the story" in shell("list")
    shell("undo", "1")
    assert "Before the story" not in shell("list")


def test_a_global_change_after_a_narrative_began_is_undone_and_one_before_it_is_not(shell: Shell) -> None:
    shell("remember", "The basket moves into its own service")
    shell("remember", "Everybody writes tests first", "--global", "--yes")
    shell("narrative", "begin", "checkout-rewrite")
    assert "`kept undo g1` undoes the change before it" in shell.fails("undo")
    shell("remember", "Nobody deploys on a Friday", "--global", "--yes")
    shell("undo", "--yes")
    assert "Everybody writes tests first" in shell("list")
    assert "Nobody deploys" not in shell("list")


def test_the_name_of_a_narrative_may_be_given_at_its_end(shell: Shell) -> None:
    shell("narrative", "begin", "checkout-rewrite")
    assert "The narrative under way is checkout-rewrite, not billing." in shell.fails("narrative", "end", "billing")
    assert "has ended" in shell("narrative", "end", "checkout-rewrite")
