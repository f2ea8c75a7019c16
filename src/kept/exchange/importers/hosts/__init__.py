"""The memories that agents keep themselves: where each host has its notes, and how they are read. Nothing is written.

One module a host. `memory.host_notes` finds the files and stores the notes.
"""

from kept.exchange.importers.hosts.claude_notes import CLAUDE
from kept.exchange.importers.hosts.codex_notes import CODEX
from kept.exchange.importers.hosts.gemini_notes import GEMINI
from kept.exchange.importers.hosts.notes_text import Host as Host
from kept.exchange.importers.hosts.notes_text import HostFacts as HostFacts
from kept.exchange.importers.hosts.notes_text import HostFolder as HostFolder
from kept.exchange.importers.hosts.notes_text import HostNote as HostNote
from kept.exchange.importers.hosts.notes_text import slug_of as slug_of
from kept.exchange.importers.hosts.qwen_notes import QWEN

HOSTS = (CLAUDE, CODEX, QWEN, GEMINI)
