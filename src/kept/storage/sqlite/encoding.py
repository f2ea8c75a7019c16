"""How values are stored in few bytes: ids and hashes as blobs, moments as integers, long texts compressed.

Called by rows.py for every value that is written or read. Ids and hashes are stored as blobs when that can be
reversed exactly, and as they are otherwise; moments are microseconds since 1970. Rule: the dictionaries here are part
of the file format. A changed byte in them makes stored payloads unreadable, so a change needs a migration.
"""

import zlib
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec

COMPRESS_FROM = 128  # characters: shorter contents stay readable in the file, and would save little

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_WINDOW = -12  # 4 KB, without header and checksum: rows have checksums and payloads digests of their own
_MEMORY_LEVEL = 8  # less memory takes longer
_LEVEL = 3  # more takes a quarter longer for 3 % fewer bytes

# What payloads are full of: field names and common values in the order in which a payload has them, and common words.
# The last bytes are the cheapest to refer to.
PAYLOAD_DICTIONARY = (
    b" function should instead because error which file test value after before when always never into data server "
    b"client request response config default version module class return build deploy branch commit is not are have "
    b"will can use that with from this for and the to of in a "
    b'{"acceptance_criteria":[null,[]],"agent":[null,"blocked_by":[null,[]],"checked":[0,"completed_at":[null,'
    b'"description":[null,"","detected_at":[null,"expands_to":[null,[""finished_at":[null,"flushed":[0,"left":[null,'
    b'"milestone":[null,"name":[null,"packed_at":[null,"parent":[null,"priority":[null,"resolved_at":[null,"right":['
    b'null,"started_at":[null,"state":["pending","active","done"],"summary":["","word":[null,"type":[null,"ambiguous"'
    b'{"archived_at":[null,"20"reason":[null,"superseded"forgotten"evicted"expired"],"status":["candidate","archived"'
    b'"confirmed","pinned"],"superseded_by":[null,"feedback":[0,3],"importance":[0.5,0.6],"last_hit_at":[null,"202'
    b'"updated_at":["202"verified_at":[null,"202"last_used_at":[null,"202"use_count":[0,1],"topic":[null,"title":['
    b'null,"key":[null,"item_type":[null,"data":[null,{"fix":'
    b'{"confidence":[null,1.0],"content":[null,""],"created_at":[null,"202-1T:0.Z"],"feedback":[null,0],"files":[null,'
    b'["src/.py"]],"fingerprint":[null,""],"id":[null,1],"importance":[null,0.80.90.7],"kind":[null,"preference"'
    b'"convention"warning"discovery"pattern"architecture"error"progress"summary"fact"decision"],"scope":[null,"memory"'
    b'],"source":[null,{"agent":"claude-code"agent","file":null,"line":null,"narrative":null,"origin":"conversation"'
    b'user"agent","session":null,"task":null}],"space":[null,"project/"],"status":[null,"confirmed"],"tags":[null,[""]'
    b',[]],"tier":[null,"project"],"trust":[null,"user"tool"unknown"agent"],"uid":[null,"01"],'
    b'"updated_at":[null,"202T"],"use_count":[null,0]}'
)

encode_json = msgspec.json.Encoder().encode
decode_json = msgspec.json.Decoder().decode


@lru_cache(maxsize=256)  # an event's hash is the next one's `prev`; a group's events have one name
def hex_blob(text: str | None) -> Any:
    """A hexadecimal text as a blob of half its length; any other text as it is."""
    if text is None:
        return None
    try:
        blob = bytes.fromhex(text)
    except ValueError:
        return text
    return blob if blob.hex() == text else text


def hex_text(stored: Any) -> Any:
    return stored.hex() if isinstance(stored, bytes) else stored


@lru_cache(maxsize=256)  # of a memory and of its event
def uid_blob(uid: str) -> bytes | str:
    """A UUID as a blob of 16 bytes; any other name as it is."""
    if len(uid) == 36:
        try:
            blob = bytes.fromhex(uid.replace("-", ""))
        except ValueError:
            return uid
        if uid_text(blob) == uid:
            return blob
    return uid


def uid_text(stored: Any) -> str:
    if not isinstance(stored, bytes):
        return str(stored)
    digits = stored.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


@lru_cache(maxsize=256)  # all that a turn writes was written at one moment
def microseconds(at: datetime | None) -> int | None:
    return None if at is None else (at - _EPOCH) // _MICROSECOND


@lru_cache(maxsize=4096)  # most memories have one moment in two fields
def moment(stored: int | None) -> Any:
    """The moment that `microseconds` was given."""
    return None if stored is None else _EPOCH + timedelta(microseconds=stored)


@lru_cache(maxsize=256)
def clock(at: datetime | None) -> str | None:
    """Text that sorts by time, always in UTC and always of one length: for tables of few rows."""
    if at is None:
        return None
    if at.tzinfo is not UTC:
        at = at.astimezone(UTC)
    return at.isoformat(timespec="microseconds")[:-6] + "Z"  # instead of +00:00


def content_blob(content: str, words: str) -> bytes | str:
    """A long content, compressed with the words of the same row, which say most of it; a short one as it is."""
    if len(content) < COMPRESS_FROM:
        return content
    return _compressed(content.encode(), words.encode())


def content_text(stored: bytes | str, words: str) -> str:
    return stored if isinstance(stored, str) else _decompressed(stored, words.encode()).decode()


def payload_blob(payload: bytes, subject: str, at: datetime) -> bytes:
    """The payload of an event. Its subject and its moment, which stand beside it, need not be said again."""
    return _compressed(payload, PAYLOAD_DICTIONARY + f"{subject}{clock(at)}".encode())


def payload_bytes(stored: bytes, subject: str, at: datetime) -> bytes:
    """What `payload_blob` was given. Raises ValueError when the blob is damaged."""
    return _decompressed(stored, PAYLOAD_DICTIONARY + f"{subject}{clock(at)}".encode())


def _compressed(content: bytes, dictionary: bytes) -> bytes:
    deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW, _MEMORY_LEVEL, zlib.Z_DEFAULT_STRATEGY, dictionary)
    return deflate.compress(content) + deflate.flush()


def _decompressed(stored: bytes, dictionary: bytes) -> bytes:
    try:
        return zlib.decompressobj(_WINDOW, dictionary).decompress(stored)
    except (TypeError, zlib.error) as error:
        raise ValueError("The stored bytes cannot be decompressed.") from error
