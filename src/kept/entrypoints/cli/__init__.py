"""The command line: `kept`.

`catalog` lists the commands, `frame` reads the options that all of them have, `invocation` runs one and turns errors
into exit codes, and the module of a command is imported when it is called. Rule: a command translates words into one
call of the facade and its result into words; it decides nothing.
"""

import gc
import os

from kept.entrypoints.lookup import use_absolute_path


def main() -> None:
    """Run `kept` with the arguments of this process, and end the process."""
    use_absolute_path(os.environ)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of numpy: on a busy machine its threads wait for each other
    gc.set_threshold(50_000)  # what is imported lives until the end; looking through it for garbage takes 3 ms
    from kept.entrypoints.cli.frame import root  # after the threshold is set: importing makes most of the objects

    try:
        root.main()
    finally:
        gc.freeze()  # the interpreter would search everything once more before it ends: 20 ms for nothing
