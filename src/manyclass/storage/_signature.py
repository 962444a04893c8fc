"""A signature of a stored model, for those who need to know who wrote it."""

from __future__ import annotations

import hashlib
import hmac
import io
import zipfile
from typing import Any, cast

from manyclass.storage._schema import NotLoaded

SIGNATURE = "manyclass.hmac"


def signed(content: bytes, key: bytes) -> bytes:
    """Return an archive with its signature."""
    buffer = io.BytesIO(content)
    with zipfile.ZipFile(buffer) as archive:
        signature = sign(archive, key)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(SIGNATURE, signature)
    return buffer.getvalue()


def sign(archive: zipfile.ZipFile, key: bytes) -> str:
    """Return the HMAC (SHA-256) of all members but the signature, in hexadecimal digits."""
    if not isinstance(key, bytes) or len(key) < 16:
        raise TypeError("key must be at least 16 bytes, such as secrets.token_bytes(32).")
    code = hmac.new(key, digestmod=hashlib.sha256)
    for name in sorted(set(archive.namelist()) - {SIGNATURE}):
        with archive.open(name) as member:
            content = hashlib.file_digest(cast(Any, member), "sha256").digest()
        code.update(hashlib.sha256(name.encode()).digest() + content)
    return code.hexdigest()


def check_signature(archive: zipfile.ZipFile, key: bytes) -> None:
    """Raise :class:`NotLoaded` if an archive was not signed with this key."""
    expected = sign(archive, key)
    if SIGNATURE not in archive.namelist():
        raise NotLoaded("has no signature, but a key was given. It was not loaded.")
    if not hmac.compare_digest(archive.read(SIGNATURE), expected.encode()):
        raise NotLoaded("was signed with another key, or changed since. It was not loaded.")
