"""The command line: `kept`.

`frame` reads the options that every command takes and turns errors into exit codes, `catalog` says which
commands there are, and a command's own module is imported when that command is called.
"""


def main() -> None:
    """Run `kept` with the arguments of this process, and end the process."""
    from kept.entrypoints.cli.frame import root

    root.main()
