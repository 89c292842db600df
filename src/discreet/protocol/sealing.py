"""Reports that only the server can open: sealed boxes, all of one length.

A box holds the index and the digest of the epoch it is for, encrypted to the server's public key
by libsodium's sealed boxes (X25519 and XSalsa20-Poly1305, through PyNaCl). Whoever carries it sees
84 bytes that look random, whatever the index is. A box that was changed does not open. One that is
carried into another epoch opens and is refused there.

Keys are 64 hexadecimal digits. The secret one is drawn like every other secret
(`discreet.trusted.randomness.secret_key`), stays with the server, and is in no journal.
"""

from typing import Any

from discreet import checks
from discreet.errors import InvalidArgument

#: An index has four bytes, a digest 32; a box adds a one-time key and a tag.
INDEX_BYTES, DIGEST_BYTES, ADDED_BYTES = 4, 32, 48
#: Every box has so many hexadecimal digits.
BOX_DIGITS = 2 * (INDEX_BYTES + DIGEST_BYTES + ADDED_BYTES)


def public_key(secret: str) -> str:
    """The public key that belongs to a server's secret one."""
    checks.hexadecimal("secret", secret, 64)
    return bytes(_nacl().PrivateKey(bytes.fromhex(secret)).public_key).hex()


def seal(index: int, epoch: str, key: str) -> str:
    """A box that only the holder of the key's secret can open; another one at each call.

    >>> secret = "07" * 32
    >>> box = seal(5, "ab" * 32, public_key(secret))
    >>> len(box) == BOX_DIGITS, unseal(box, "ab" * 32, secret), unseal(box, "cd" * 32, secret)
    (True, 5, None)
    """
    checks.hexadecimal("epoch", epoch, 64)
    checks.hexadecimal("key", key, 64)
    if not 0 <= index < 1 << (8 * INDEX_BYTES):
        raise InvalidArgument("index", f"one of {INDEX_BYTES} bytes")
    said = index.to_bytes(INDEX_BYTES, "big") + bytes.fromhex(epoch)
    nacl = _nacl()
    box: bytes = nacl.SealedBox(nacl.PublicKey(bytes.fromhex(key))).encrypt(said)
    return box.hex()


def unseal(box: str, epoch: str, secret: str) -> int | None:
    """The index in a box, or None where it does not open or is for another epoch."""
    nacl = _nacl()
    try:
        opener = nacl.SealedBox(nacl.PrivateKey(bytes.fromhex(secret)))
        said: bytes = opener.decrypt(bytes.fromhex(box))
    except (nacl.CryptoError, ValueError):
        return None
    index, digest = said[:INDEX_BYTES], said[INDEX_BYTES:]
    return int.from_bytes(index, "big") if digest.hex() == epoch else None


def _nacl() -> Any:
    """PyNaCl, loaded when a report is sealed or opened; or an error that says what is missing."""
    try:
        from nacl import exceptions, public
    except ImportError:
        words = "PyNaCl, which seals reports (pip install 'discreet[shuffler]')"
        raise InvalidArgument("key", words) from None
    return _Nacl(public, exceptions)


class _Nacl:
    """The names of PyNaCl that are used here."""

    def __init__(self, public: Any, exceptions: Any) -> None:
        self.PrivateKey = public.PrivateKey
        self.PublicKey = public.PublicKey
        self.SealedBox = public.SealedBox
        self.CryptoError = exceptions.CryptoError
