"""The identities of many texts at once: what ``text_identity`` says of each, by a compiled loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from lustrum.model.arrays import Array, Ints
from lustrum.model.keys import text_identity
from lustrum.numeric.compiled import compiled

PLAIN_TEXTS = 1 << 21
"""Texts that a process looks at one by one before it compiles the loop, which takes longer for fewer."""
_plain_left = PLAIN_TEXTS


def text_identities(texts: pa.Array) -> Ints:
    """``text_identity`` of every text of a column without gaps."""
    global _plain_left
    numbers = _plain_numbers(texts)
    if numbers is not None:
        return numbers
    count = len(texts)
    _plain_left -= count
    if _plain_left >= 0:
        return np.fromiter(map(text_identity, texts.to_pylist()), dtype=np.int64, count=count)
    return by_loop(texts)


def _plain_numbers(texts: pa.Array) -> Ints | None:
    """The numbers of texts that are all plain whole numbers of at most 63 bits."""
    try:
        whole = texts.cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    # Only a number that is written plainly is written the same way again.
    if not whole.cast(pa.string()).equals(texts):
        return None
    numbers: Ints = whole.to_numpy(zero_copy_only=False)
    return None if (numbers < 0).any() else numbers


def by_loop(texts: pa.Array) -> Ints:
    count = len(texts)
    # Views that cannot be written to, whatever the column is, so that the loop is compiled for one kind.
    starts, data = (memoryview(part or b"").toreadonly() for part in texts.buffers()[1:])
    ends = np.frombuffer(starts, dtype=np.int32)[texts.offset : texts.offset + count + 1]
    out = np.empty(count, dtype=np.int64)
    identify(np.frombuffer(data, dtype=np.uint8), ends, _CONSTANTS, _BEGIN, out)
    return out


def _primes(count: int) -> list[int]:
    primes: list[int] = []
    number = 2
    while len(primes) < count:
        if all(number % prime for prime in primes):
            primes.append(number)
        number += 1
    return primes


def _root_digits(number: int, root: int) -> int:
    """The first 32 binary digits behind the point of a root, exactly."""
    wanted = number << (32 * root)
    low, high = 0, 1 << 40
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**root <= wanted else (low, middle)
    return low & 0xFFFFFFFF


_CONSTANTS = np.array([_root_digits(prime, 3) for prime in _primes(64)], dtype=np.uint32)
_BEGIN = np.array([_root_digits(prime, 2) for prime in _primes(8)], dtype=np.uint32)


@compiled
def identify(
    letters: Array, ends: Array, constants: Array, begin: Array, out: Array
) -> None:  # pragma: no cover
    """The identities of texts that stand one behind the other: numbers as such, others by SHA-256."""
    schedule = np.empty(64, dtype=np.uint32)
    state = np.empty(8, dtype=np.uint32)
    for i in range(out.size):
        start, size = ends[i], ends[i + 1] - ends[i]
        if 0 < size <= 19 and (size == 1 or letters[start] != 48):
            number = np.uint64(0)
            plain = True
            for j in range(size):
                digit = letters[start + j]
                plain = plain and 48 <= digit <= 57
                number = number * np.uint64(10) + np.uint64(digit - 48)
            if plain and number < np.uint64(1 << 63):
                out[i] = np.int64(number)
                continue
        state[:] = begin
        blocks = (size + 8) // 64 + 1
        for block in range(blocks):
            first = 64 * block
            for j in range(16):
                word = np.uint32(0)
                for k in range(4):
                    offset = first + 4 * j + k
                    byte = np.uint32(0)
                    if offset < size:
                        byte = np.uint32(letters[start + offset])
                    elif offset == size:
                        byte = np.uint32(0x80)
                    word = np.uint32(np.uint32(word << np.uint32(8)) | byte)
                schedule[j] = word
            if block == blocks - 1:
                schedule[14] = np.uint32((8 * size) >> 32)
                schedule[15] = np.uint32(8 * size)
            _digest_block(schedule, constants, state)
        high, low = np.uint64(state[0]), np.uint64(state[1])
        out[i] = np.int64(((high << np.uint64(32)) | low) >> np.uint64(1))


@compiled
def _digest_block(schedule: Array, constants: Array, state: Array) -> None:  # pragma: no cover
    """One block of SHA-256 (FIPS 180-4, section 6.2.2), its 16 words at the start of the schedule."""
    for t in range(16, 64):
        x, y = schedule[t - 15], schedule[t - 2]
        s0 = _turned(x, 7) ^ _turned(x, 18) ^ np.uint32(x >> np.uint32(3))
        s1 = _turned(y, 17) ^ _turned(y, 19) ^ np.uint32(y >> np.uint32(10))
        schedule[t] = np.uint32(schedule[t - 16] + s0 + schedule[t - 7] + s1)
    a, b, c, d = state[0], state[1], state[2], state[3]
    e, f, g, h = state[4], state[5], state[6], state[7]
    for t in range(64):
        s1 = _turned(e, 6) ^ _turned(e, 11) ^ _turned(e, 25)
        one = np.uint32(h + s1 + (g ^ (e & (f ^ g))) + constants[t] + schedule[t])
        s0 = _turned(a, 2) ^ _turned(a, 13) ^ _turned(a, 22)
        two = np.uint32(s0 + ((a & b) ^ (a & c) ^ (b & c)))
        h, g, f = g, f, e
        e = np.uint32(d + one)
        d, c, b = c, b, a
        a = np.uint32(one + two)
    state[0] += a
    state[1] += b
    state[2] += c
    state[3] += d
    state[4] += e
    state[5] += f
    state[6] += g
    state[7] += h


@compiled
def _turned(word: Any, by: int) -> Any:  # pragma: no cover
    """A word of 32 bits turned to the right."""
    return np.uint32((word >> np.uint32(by)) | (word << np.uint32(32 - by)))
