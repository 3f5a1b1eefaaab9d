"""Inputs that are nearly right: bytes that are flipped, cut, repeated and spliced, and values that nobody would write."""

from __future__ import annotations

import random

HOSTILE = (
    b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\x1b[2J", b"\xe2\x80\xae", b"-1", b"1e308", b"1e999", b"NaN", b"-Infinity", b"null", b"true",
    b"99999999999999999999999999", b"\\ud800", b"[]", b"{}", b'""', b"''", b"[" * 400, b"{" * 400, b"(" * 400, b"<<" * 200, b'{"a":' * 300,
    b"&a [*a]", b"&a", b"*a", b"!!python/object/apply:os.system ['true']", b"<!DOCTYPE x [<!ENTITY a 'b'>]>", b"&a;", b"\t\t\t", b"\n\n", b"\r",
    b'"', b"'", b"#", b"|", b"%s%n", b"../../etc/passwd", b"$(true)", b"; DROP TABLE patient", b"A" * 5000, b"\xc3\xa9", b"=", b": ",
    b"- ", b"...", b"---", b"0", b"0.0", b"1", b"_:b", b"<http://x/", b"> ", b" .", b"@prefix", b"^^<", b"Infinity", b"5", b"~", b"? ", b"1_000",
)  # fmt: skip


def mutated(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """A few changes to a good input, or a bad one from nowhere."""
    if rng.random() < 0.02:
        return rng.choice(HOSTILE) * rng.randint(1, 50)
    out = bytearray(data)
    for _ in range(1 + int(rng.expovariate(0.7))):
        out = _changed(out, rng, others)
    return bytes(out)


def _changed(out: bytearray, rng: random.Random, others: list[bytes]) -> bytearray:
    if not out:
        return bytearray(rng.choice(HOSTILE))
    start = rng.randrange(len(out))
    end = min(len(out), start + 1 + int(rng.expovariate(0.05)))
    match rng.randrange(9):
        case 0:
            out[start] ^= 1 << rng.randrange(8)
        case 1:
            out[start] = rng.randrange(256)
        case 2:
            del out[start:end]
        case 3:
            del out[start:]
        case 4:
            out[start:start] = rng.choice(HOSTILE)
        case 5:
            out[start:end] = rng.choice(HOSTILE)
        case 6:
            out[start:start] = out[start:end] * rng.randint(1, 30)
        case 7:
            other = rng.choice(others)
            cut = rng.randrange(len(other) + 1)
            out[start:] = other[cut:]
        case 8:
            out[start:end] = _value(bytes(out), start, rng)
    return out


def _value(data: bytes, start: int, rng: random.Random) -> bytes:
    """What stands where a value of a line begins, as another line's."""
    lines = data.split(b"\n")
    line = rng.choice(lines)
    return line[line.find(b":") + 1 :] if b":" in line else line
