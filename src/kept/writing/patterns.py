"""Regular expressions that are compiled at first use.

The write path knows hundreds of patterns and a program that only recalls needs none of them. They are kept as text, so
importing the modules that hold them costs nothing.
"""

import re
from functools import cache


@cache
def compiled(source: str, flags: int = 0) -> re.Pattern[str]:
    """The pattern, compiled."""
    return re.compile(source, flags)
