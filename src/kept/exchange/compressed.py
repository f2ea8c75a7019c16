"""Transcripts that their program has compressed with zstd: Codex does so with old ones.

Python reads them from 3.14 on; before that the package `zstandard` or the program `zstd` has to be there. Rule: where
none is, that is an error that says so. A transcript is never left out silently.
"""

import importlib
import shutil
import subprocess
from pathlib import Path

from kept.errors import InvalidInput

MOST_BYTES = 1_000_000_000  # of one transcript; a file that unpacks to more was made to fill the memory
SECONDS = 120


def decompressed(file: Path) -> bytes:
    """The content of a .zst file. Raises InvalidInput when it is broken, or nothing here can read it."""
    packed = file.read_bytes()
    for read in (_by_python, _by_package, _by_program):
        try:
            content = read(packed)
        except (ImportError, FileNotFoundError):
            continue
        except Exception as error:  # each reader has errors of its own
            raise InvalidInput(f"{file} cannot be unpacked ({type(error).__name__}).", hint="Check the file.") from None
        if len(content) > MOST_BYTES:
            raise InvalidInput(f"{file} unpacks to more than {MOST_BYTES // 10**6:,} MB.", hint="Unpack it yourself.")
        return content
    raise InvalidInput(
        f"{file} is compressed with zstd, which this Python cannot read.",
        hint="Install zstd, or run: pip install zstandard",
    )


def _by_python(packed: bytes) -> bytes:
    reader = importlib.import_module("compression.zstd").ZstdDecompressor()
    return bytes(reader.decompress(packed, MOST_BYTES + 1))


def _by_package(packed: bytes) -> bytes:
    reader = importlib.import_module("zstandard").ZstdDecompressor().decompressobj()
    return bytes(reader.decompress(packed))


def _by_program(packed: bytes) -> bytes:
    program = shutil.which("zstd")
    if program is None:
        raise FileNotFoundError("zstd")
    command = [program, "--decompress", "--stdout", "--quiet"]
    return subprocess.run(command, input=packed, capture_output=True, timeout=SECONDS, check=True).stdout
