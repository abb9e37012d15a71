"""Credentials in text: what a value's form, its name or its randomness gives away.

A digest goes into prompts, caches and committed files, so the line of a Makefile that holds a token must lose it first.
Wrong alarms cost too: a digest full of `[redacted]` helps nobody. So a value goes when its own form says what it is (a
vendor's prefix, a key block, a password in a URL), when a name says that it is secret and the value is a literal, or
when it is long and as random as only machines write. What refers to a secret (`os.environ["X"]`, `$TOKEN`, `<token>`,
a type, a call) tells nothing and stays; so does a public checksum that is introduced as one.

A compact table of our own instead of a scanner library: a scanner answers "which plugin, which line, verified?" and
brings an HTTP client and a YAML parser for it (detect-secrets 1.5: 94 ms until the first line is looked at, then 0.3 ms
a line, where these patterns take 5 ms and 6 us). Every pattern has bounded repeats or starts at a fixed word, so time
is linear in the text; none depends on the Unicode tables of the Python version.

Measured over the source and documentation of flask, ripgrep, redis and Vue (680,000 lines): 55 lines change, 8 in
100,000. They hold example keys, password hashes, opaque ids, and long hex digits that nothing introduces as a checksum.
"""

from __future__ import annotations

import math
import re
from collections import Counter

__all__ = ["REDACTED", "redact"]

REDACTED = "[redacted]"

# Forms that say themselves what they are. Those that could also be words (`sk-circle-fade-dot`) must look random.
_KNOWN = re.compile(
    r"""(?<![A-Za-z0-9_])(?:
      (?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AIPA|ANPA|ANVA|AROA)[A-Z0-9]{16}(?![A-Za-z0-9])  # AWS
    | gh[opsru]_[A-Za-z0-9]{20,255} | github_pat_[A-Za-z0-9_]{20,255}
    | gl(?:pat|oas|dt|rt|cbt|ptt|ft|imt|agent|soat|ffct)-[A-Za-z0-9_.-]{16,255}
    | xox[abeoprs]-[A-Za-z0-9-]{10,255} | xapp-\d-[A-Za-z0-9-]{10,255}                               # Slack
    | (?:[rs]k|pk)_(?:live|test)_[A-Za-z0-9]{10,255} | whsec_[A-Za-z0-9+/=]{24,255}                  # Stripe
    | AIza[A-Za-z0-9_-]{30,60} | ya29\.[A-Za-z0-9_-]{20,255} | GOCSPX-[A-Za-z0-9_-]{20,60}           # Google
    | npm_[A-Za-z0-9]{30,60} | pypi-AgE[A-Za-z0-9_-]{30,255} | hf_[A-Za-z0-9]{30,60}
    | SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}                                                 # SendGrid
    | eyJ[A-Za-z0-9_-]{10,4000}\.eyJ[A-Za-z0-9_-]{4,8000}(?:\.[A-Za-z0-9_-]{0,4000})?                # JWT
    | dop_v1_[a-f0-9]{40,64} | shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32} | lin_api_[A-Za-z0-9]{30,60}
    | AGE-SECRET-KEY-1[A-Z0-9]{40,60} | hvs\.[A-Za-z0-9_-]{24,255} | dckr_pat_[A-Za-z0-9_-]{20,60}
    )""",
    re.VERBOSE,
)
_PREFIXED = re.compile(r"(?<![A-Za-z0-9_-])(?:sk|pypi|gsk|r8|pat)[-_]([A-Za-z0-9_-]{20,255})")
_WEBHOOK = re.compile(
    r"(hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/)[A-Za-z0-9/_-]{8,255}"
)
_IN_URL = re.compile(r"(?<=://)([^\s/:@\"'<>`]{0,128}):([^\s/\"'<>`]{1,256})@(?=[^\s/\"'<>`])")

_KEY_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = re.compile(r"-----END (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BODY = re.compile(r"[A-Za-z0-9+/=]{16,}")
_KEY_CUT = re.compile(
    r"(?:(?:\s|\\[nr])*(?:Proc-Type|DEK-Info|Version|Comment): ?[\w ,.()-]{1,80}(?=\n|\\[nr]))*"
    r"(?:(?:[\s\"',]|\\[nr])*[A-Za-z0-9+/=]{16,})+(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{1,15}\s*\Z)?"
)

_BEARER = re.compile(r"(?ia)\b(Bearer|Basic)[ \t]+([A-Za-z0-9._~+/-]{8,4000}={0,2})")
_AUTHORIZATION = re.compile(
    r"(?ia)(\bauthorization[\"']?[ \t]{0,4}(?:=>|[:=])[ \t]{0,4}[\"']?)((?:bearer|basic|token|apikey)[ \t]+)?"
    r"([A-Za-z0-9._~+/-]{6,4000}={0,2})"
)

_NAMED = re.compile(
    r"""(?ix)
    (?P<key> pass(?:word|wd|phrase) | pwd | secret | token | credential | _auth(?=[ \t]*=)
           | (?:api|access|auth|private|secret|signing|encryption|account)[_-]?key )
    (?: s | [_-]?(?:key|value|string|base|default|prod|dev|test|id|hash) ){0,3} [0-9]{0,3}
    ["'\]]{0,3} (?P<separator> [ \t]{0,8}(?: => | :=? | = )[ \t]{0,8} | >(?=[^<>\s]{6,200}</) )
    (?: [bru]{0,2}"(?P<double>[^"\n]{6,512})" | [bru]{0,2}'(?P<single>[^'\n]{6,512})'
      | (?P<bare>[^\s"'`,;()\[\]<>{}\\]{6,512}) )"""
)
_OPTION = re.compile(
    r"""(?ix) (?<![A-Za-z0-9_-])(?P<key> --?(?:[a-z]{1,20}-){0,3}(?:password|passwd|passphrase|secret|token|api-?key) )
    (?P<separator>[ \t]{1,4}) (?P<bare>[^\s"'`,;()\[\]<>{}\\]{6,512})"""
)

# Not the secret itself: an expansion, a format field, a mask, an address, a hint to the reader.
_REFERENCE = re.compile(
    r"(?a)^[$%<{*=]|[$#{%]\{|\$\w|%\(|%\w$|\{[\w.!: ]*\}|\.\.\.|^x{3,}|\*{3,}|://|\\[nru]|^(?i:your|example|insert|redacted)"
)
_BARE_REFERENCE = re.compile(
    r"(?a)^[&@#!./~\\|-]|::|->|^0x|^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$|^[A-Z][A-Z0-9]*_[A-Z0-9_]*$|=$"
)
_SECRET_WORD = re.compile(r"(?i)pass|pwd|secret|token|credential|auth|key")
_TYPE = re.compile(
    r"(?i)[&*?]*(?:u?int|float|double|char|u?string|bytes?|bool|varchar|sha|md|u|i|f|v)\d*(?:_t)?[?!*&]*"
)
_NAME = re.compile(r"[A-Za-z]+(?:[_.:/-]+[A-Za-z]+)*")
_JOINT = re.compile(r"[a-z][A-Z]|[A-Za-z0-9][_.-][A-Za-z]")

_BLOB = re.compile(r"(?<![A-Za-z0-9+/_=.-])[A-Za-z0-9+/_-]{32,}={0,2}")
# What stands before a public checksum: `uses: owner/action@<commit>`, `rev: <commit>`, `RUST_SHA256="..."`.
_CHECKSUM = re.compile(
    r"(?a)(?:/[\w.-]{1,60}@|(?i:sha-?(?:1|256|384|512)?|commit|rev|revision|md5|checksum|digest)\W{1,4})$"
)
_INTEGRITY = re.compile(r"sha(?:1|256|384|512)-")  # of a lock file
_DIGIT = re.compile(r"[0-9]")
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_WORD = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}(?![a-z])")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def redact(text: str) -> str:
    """`text` with each credential replaced by `[redacted]`; lines, names and everything around it stay.

    Deterministic and idempotent: rules are applied until none finds anything, and each hit removes characters.
    """
    while (redacted := _redact_once(text)) != text:
        text = redacted
    return text


def _redact_once(text: str) -> str:
    if "-----BEGIN " in text:
        text = _without_key_blocks(text)
    text = _KNOWN.sub(REDACTED, text)
    text = _PREFIXED.sub(lambda found: found[0] if _mostly_words(found[1]) else REDACTED, text)
    if "://" in text or ".com/" in text:
        text = _WEBHOOK.sub(rf"\1{REDACTED}", text)
        text = _IN_URL.sub(_in_url, text)
    text = _AUTHORIZATION.sub(_authorization, text)
    text = _BEARER.sub(lambda found: found[0] if _mostly_words(found[2]) else f"{found[1]} {REDACTED}", text)
    text = _NAMED.sub(_named, text)
    text = _OPTION.sub(_named, text)
    return _BLOB.sub(_blob, text)


def _blob(found: re.Match[str]) -> str:
    before = found.string[max(found.start() - 80, 0) : found.start()]
    public = (_HEX.fullmatch(found[0]) and _CHECKSUM.search(before)) or _INTEGRITY.match(found[0])
    return found[0] if public or not _is_random(found[0]) else REDACTED


def _in_url(found: re.Match[str]) -> str:
    user, password = found[1], found[2]
    placeholder = _NAME.fullmatch(password) and _SECRET_WORD.search(password)  # `user:password@host` in a manual
    return found[0] if placeholder or _REFERENCE.search(password) else f"{user}:{REDACTED}@"


def _without_key_blocks(text: str) -> str:
    """Private key blocks, whole or cut before their end; a program's mention of the opening line stays."""
    pieces: list[str] = []
    position = 0
    while begin := _KEY_BEGIN.search(text, position):
        following = text.find("-----BEGIN ", begin.end())
        end = _KEY_END.search(text, begin.end(), len(text) if following < 0 else following)
        cut = None
        if end and _KEY_BODY.search(text, begin.end(), end.start()):
            cut = end
        elif not end:
            cut = _KEY_CUT.match(text, begin.end())
        pieces.append(text[position : begin.start() if cut else begin.end()])
        if cut:
            pieces.append(REDACTED)
        position = (cut or begin).end()
    return "".join(pieces) + text[position:]


def _authorization(found: re.Match[str]) -> str:
    before, scheme, value = found[1], found[2] or "", found[3]
    if _NAME.fullmatch(value) and (_SECRET_WORD.search(value) or not (scheme or _mixed_case(value))):
        return found[0]
    return f"{before}{scheme}{REDACTED}"


def _named(found: re.Match[str]) -> str:
    """Replace the value of a secret's name, when it is a literal."""
    groups = found.groupdict()
    kind = next(name for name in ("double", "single", "bare") if groups.get(name))
    start, end = found.start(kind) - found.start(), found.end(kind) - found.start()
    following = found.string[found.end() : found.end() + 1]
    if kind == "bare":
        element = found["separator"] == ">"
        assigned = element or (found["separator"] == "=" and found["key"].isupper())  # as in a shell or a .env file
        call = following in tuple("([{<") and not element
        secret = not call and _is_bare_secret(found["key"], found[kind], assigned)
    else:
        secret = _is_quoted_secret(found["key"], found[kind])
    return found[0][:start] + REDACTED + found[0][end:] if secret else found[0]


def _is_quoted_secret(key: str, value: str) -> bool:
    if " " in value or "\t" in value or _REFERENCE.search(value) or _TYPE.fullmatch(value):
        return False
    if _NAME.fullmatch(value):
        if _SECRET_WORD.search(value) or not value.isalpha():
            return _is_random(value) if len(value) >= 32 else False
        return key.lower().startswith(("pass", "pwd", "secret")) or not _mostly_words(value)
    return True


def _is_bare_secret(key: str, value: str, assigned: bool) -> bool:
    if _REFERENCE.search(value) or _BARE_REFERENCE.search(value) or _TYPE.fullmatch(value):
        return False
    base64 = _mixed_case(value) and ("/" in value or "+" in value)
    if _SECRET_WORD.search(value) and _mostly_words(value) and not base64:
        return False
    digits = len(_DIGIT.findall(value))
    if digits == len(value):
        return key.lower().startswith(("pass", "pwd"))
    if digits:
        return base64 or not (_JOINT.search(value) and _mostly_words(value))
    return assigned and value.isascii()


def _mixed_case(value: str) -> bool:
    return any(character.isupper() for character in value[1:]) and any(character.islower() for character in value)


def _mostly_words(value: str) -> bool:
    """Whether people wrote this: more than half of it stands in runs that look like words (`parseHttpHeader2`)."""
    return sum(len(word) for word in _WORD.findall(value)) > 0.55 * len(value)


def _is_random(value: str) -> bool:
    """Whether 32 or more characters are what a generator writes: digits among letters, no words, high entropy."""
    value = value.rstrip("=")
    digits = len(_DIGIT.findall(value))
    letters = sum(character.isalpha() for character in value)
    if not digits or not letters or _UUID.fullmatch(value):
        return False
    if _HEX.fullmatch(value):
        return _entropy(value) >= 3.0
    if _entropy(value) < 3.8 or "abcdefgh" in value.lower() or "12345678" in value:
        return False
    if value.islower() or value.isupper():
        return digits >= 0.12 * len(value) and digits + letters == len(value)
    longest = max(value.split("/"), key=len)  # a path has short parts
    return len(longest) >= 16 and not _mostly_words(value) and not _mostly_words(longest)


def _entropy(value: str) -> float:
    """Shannon entropy in bits per character."""
    return -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values())
