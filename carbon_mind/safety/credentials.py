"""Credentials in text: what a value's form, its name or its randomness gives away.

A digest goes into prompts, caches and committed files, so the line of a Makefile that holds a token must lose it first.
Wrong alarms cost too: a digest full of `[redacted]` helps nobody. So a value goes when its own form says what it is (a
vendor's prefix, a key block, a password in a URL), when a name says that it is secret and the value is a literal, or
when it is long and as random as only machines write. What refers to a secret (`os.environ["X"]`, `$TOKEN`, `<token>`,
a type, a call) tells nothing and stays; so does a public checksum that is introduced as one.

A compact table of our own instead of a scanner library: a scanner answers "which plugin, which line, verified?" and
brings an HTTP client and a YAML parser for it (detect-secrets 1.5: 94 ms until the first line is looked at, then 0.3 ms
a line, where these patterns take 8 ms and 5 us). Every pattern has bounded repeats or starts at a fixed word, so time
is linear in the text; none depends on the Unicode tables of the Python version.

Measured over the source and documentation of flask, ripgrep, redis, Vue, Prometheus, monolog, gson and Sinatra (885,000
lines): 72 lines change, 8 in 100,000; none of the 36,000 signatures and no line of a digest. They hold example keys,
password hashes, opaque ids, and long hex digits that nothing introduces as a checksum.

What stays unseen: a bare UUID, fewer than 32 random characters without a known form or name, and a password in a sentence.
"""

from __future__ import annotations

import math
import re
from collections import Counter

__all__ = ["REDACTED", "redact"]

REDACTED = "[redacted]"

# Forms that say themselves what they are. Those that could also be words (`sk-circle-fade-dot`) must look random.
# An underscore before them is no word's: `key_AKIA....txt`.
_KNOWN = re.compile(
    r"""(?<![A-Za-z0-9])(?:
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
    | AGE-SECRET-KEY-1[A-Z0-9]{40,60} | hv[bs]\.[A-Za-z0-9_-]{24,255} | dckr_pat_[A-Za-z0-9_-]{20,60}
    | NRAK-[A-Z0-9]{20,40} | PMAK-[a-f0-9]{24}-[a-f0-9]{34} | sq0[a-z]{3}-[A-Za-z0-9_-]{22,60}
    | dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64} | dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9.]{24,60}  # Dynatrace, Doppler
    | [A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,80} | [A-Za-z0-9_~.]{3}8Q~[A-Za-z0-9_~.-]{31,34}      # Terraform, Azure
    | tskey-[a-z]{2,20}-[A-Za-z0-9-]{20,80} | rnd_[A-Za-z0-9]{28} | HRKU-[A-Za-z0-9_-]{36,64}          # Tailscale, Heroku
    | [MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}                               # Discord
    | glc_[A-Za-z0-9+/]{32,255}={0,2} | glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}                             # Grafana
    )""",
    re.VERBOSE,
)
_PREFIXED = re.compile(r"(?<![A-Za-z0-9_-])(?:sk|pypi|gsk|r8|pat)[-_]([A-Za-z0-9_-]{20,255})")
_WEBHOOK = re.compile(
    r"(hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/)[A-Za-z0-9/_-]{8,255}"
)
_IN_URL = re.compile(r"(?<=://)([^\s/:@\"'<>`]{0,128}):([^\s/\"'<>`]{1,256})@(?=[^\s/\"'<>`])")
_URL_USER = re.compile(r"(?<=://)([A-Za-z0-9_.~%-]{16,256})@(?=[A-Za-z0-9\[])")  # a token that is the whole user
_URL_SIGNATURE = re.compile(
    r"(?i)([?&;](?:sig|signature|x-amz-signature|x-goog-signature|key|code)=)([A-Za-z0-9_.~%+/-]{16,512})"
)
# A data source without a scheme, as Go's and Oracle's drivers take it.
_IN_SOURCE = re.compile(
    r"(?i)(?<![\w./-])([\w.-]{1,64}:)([^\s:@/\"'<>`(){}]{1,128})(?=@(?:tcp|unix|localhost\b|127\.0\.0\.1\b|\())"
    r"|(\bjdbc:oracle:thin:[\w.-]{1,64}/)([^\s:@/\"'<>`]{1,128})(?=@)"
)
# Options of well-known tools whose letter says nothing by itself.
_TOOL = re.compile(
    r"""(?x) (?: \b (?: sshpass[ \t]+-p
        | mysql(?:admin|dump|import)?\b[^\n|;&]{0,200}?[ \t]-p(?=[^\s-])
        | (?:docker|podman|helm|buildah|skopeo)\b[^\n|;&]{0,60}?\blogin\b[^\n|;&]{0,200}?[ \t]-p[ \t=]
        | redis-cli\b[^\n|;&]{0,200}?[ \t]-a[ \t]
        | (?:curl|wget)\b[^\n|;&]{0,400}?[ \t](?:-u|--user|-U|--proxy-user)[ \t=]{0,4}["']?[\w.@+-]{0,64}:
        | machine[ \t]+\S{1,253}[ \t]+login[ \t]+\S{1,128}[ \t]+password[ \t] )
      | :_(?:auth|authToken|password)[ \t] )
    [ \t]{0,4}["']? (?P<bare>[^\s"'`;|&<>]{4,256})"""
)

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
           | (?:api|access|auth|private|secret|signing|encryption|account)[_-]?key
           | (?P<weak> (?<![a-z0-9]) (?:pass|pw|dsn|cookie|salt|sid|session[_-]?id)(?![a-z])
                     | (?<![a-z])(?:app|admin|master|client|consumer|deploy|license|server|service|session|shared|ssh|storage|webhook
                       |write|crypt|hmac|rails_master|sas)[_-]?key ) )
    (?: s | [_-]?(?:key|value|string|base|default|prod|dev|test|id|hash) ){0,3} [0-9]{0,3}
    ["'\]]{0,3} (?P<separator> [ \t]{0,8}(?: => | [:?+]?= | : )[ \t]{0,8} | >(?=[^<>\s]{6,200}</) | [ \t]+is[ \t]+ | [ \t]+(?=["']) )
    (?: [bru]{0,2}"(?P<double>[^"\n]{6,512})" | [bru]{0,2}'(?P<single>[^'\n]{6,512})'
      | (?P<bare>[^\s"'`,;()\[\]<>{}\\]{6,512}) )"""
)
# One of these is in every key of the two; looking for them first makes an ordinary line three times as fast.
_NAMED_WORDS = ("pass", "pw", "secret", "token", "credential", "auth", "key", "dsn", "cookie", "salt", "sid", "session")
_SEPARATING = re.compile(r"[=:>\"'-]|[ \t][iI][sS][ \t]")  # and one of these between key and value
_OPTION = re.compile(
    r"""(?ix) (?<![A-Za-z0-9_-])(?P<key> --?(?:[a-z]{1,20}-){0,3}(?:password|passwd|passphrase|secret|token|api-?key) )
    (?P<separator>[ \t]{1,4}) (?P<bare>[^\s"'`,;()\[\]<>{}\\]{6,512})"""
)

# Not the secret itself: an expansion, a format field, a mask, an address, a hint to the reader.
_REFERENCE = re.compile(
    r"(?a)^[$%<{*=]|[$#{%]\{|\$\w|%\(|%\w$|\{[\w.!: ]*\}|\.\.\.|^x{3,}|\*{3,}|://|\\[nru]|^(?i:your|example|insert|redacted)"
)
_BARE_REFERENCE = re.compile(
    r"(?a)^[&@#!./~\\|-]|::|->|^0x|^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$|^[A-Z][A-Z0-9]*_[A-Z0-9_]*$|(?<![A-Za-z0-9+/=])=$"
)
_SECRET_WORD = re.compile(r"(?i)pass|pwd|secret|token|credential|auth|key")
_TYPE = re.compile(
    r"(?i)[&*?]*(?:u?int|float|double|char|u?string|bytes?|bool|varchar|sha|md|u|i|f|v)\d*(?:_t)?[?!*&]*"
)
_NAME = re.compile(r"[A-Za-z]+(?:[_.:/-]+[A-Za-z]+)*")
_JOINT = re.compile(r"[a-z][A-Z]|[A-Za-z0-9][_.-][A-Za-z]")

# A run of the alphabets of random text, then what a path or a prefix leaves of it: `hooks/<here>`, `sqp_<here>`.
_BLOBS = (
    re.compile(r"[A-Za-z0-9+/_-]{32,}={0,2}"),
    re.compile(r"[A-Za-z0-9_-]{32,}={0,2}"),
    re.compile(r"[A-Za-z0-9]{32,}={0,2}"),
)
# What stands before a public checksum: `uses: owner/action@<commit>`, `rev: <commit>`, `RUST_SHA256="..."`, a page of a forge.
_CHECKSUM = re.compile(
    r"(?a)(?:/[\w.-]{1,60}[@#]|(?i:sha-?(?:1|256|384|512)?|commits?|rev|revision|md5|checksum|digest|ref|tree|blob|tag|etag)\W{1,6}"
    r"|\bgit(?:hub|lab)(?:usercontent)?\.[\w./-]{1,120}/)$"
)
_INTEGRITY = re.compile(
    r"sha(?:1|256|384|512)-[A-Za-z0-9+/]{0,100}$"
)  # of a lock file; the run may begin in the middle
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
        text = _URL_USER.sub(lambda found: f"{REDACTED}@" if _looks_made(found[1]) else found[0], text)
        text = _URL_SIGNATURE.sub(lambda found: f"{found[1]}{REDACTED}" if _looks_made(found[2]) else found[0], text)
    if "@" in text:
        text = _IN_SOURCE.sub(_in_source, text)
    if " -" in text or "machine" in text or ":_" in text:
        text = _TOOL.sub(_tool, text)
    text = _AUTHORIZATION.sub(_authorization, text)
    text = _BEARER.sub(lambda found: found[0] if _mostly_words(found[2]) else f"{found[1]} {REDACTED}", text)
    if _SEPARATING.search(text):  # neither of these two rules reaches over the end of a line
        lines = text.split("\n")
        text = "\n".join([_without_named(line) if _SEPARATING.search(line) else line for line in lines])
    if _BLOBS[0].search(text):
        for blob in _BLOBS:
            text = blob.sub(_blob, text)
    return text


def _without_named(line: str) -> str:
    lower = line.lower()
    if not any(word in lower for word in _NAMED_WORDS):
        return line
    return _OPTION.sub(_named, _NAMED.sub(_named, line))


def _blob(found: re.Match[str]) -> str:
    before = found.string[max(found.start() - 160, 0) : found.start()]
    if "/" in found[0] and before.endswith("."):
        return found[0]  # the path of `example.org/...`; its parts are looked at next
    public = _HEX.fullmatch(found[0]) and _CHECKSUM.search(before)
    if public or _INTEGRITY.search(before + found[0][:8]) or not _is_random(found[0]):
        return found[0]
    return REDACTED


def _in_url(found: re.Match[str]) -> str:
    user, password = found[1], found[2]
    placeholder = _NAME.fullmatch(password) and _SECRET_WORD.search(password)  # `user:password@host` in a manual
    return found[0] if placeholder or _REFERENCE.search(password) else f"{user}:{REDACTED}@"


def _in_source(found: re.Match[str]) -> str:
    before, password = (found[1], found[2]) if found[1] else (found[3], found[4])
    placeholder = _NAME.fullmatch(password) and _SECRET_WORD.search(password)
    return found[0] if placeholder or _REFERENCE.search(password) else before + REDACTED


def _tool(found: re.Match[str]) -> str:
    value = found["bare"]
    if value.isdecimal() or _REFERENCE.search(value) or (_NAME.fullmatch(value) and _SECRET_WORD.search(value)):
        return found[0]
    return found[0][: found.start("bare") - found.start()] + REDACTED


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
    key, value, separator = found["key"], found[kind], found["separator"]
    start, end = found.start(kind) - found.start(), found.end(kind) - found.start()
    following = found.string[found.end() : found.end() + 1]
    # As in a shell, a .env file or a Makefile.
    assigned = key.isupper() and (separator == "=" or separator.strip() in (":=", "?="))
    if groups.get("weak") and not (assigned and key.startswith("P")) and not _looks_made(value, 8):
        secret = False
    elif kind == "bare":
        element = separator == ">"
        call = following in tuple("([{<") and not element
        said = separator.strip().lower() != "is" or _looks_made(value, 8)  # `the token is base64` tells no token
        secret = said and not call and _is_bare_secret(key, value, assigned or element)
    else:
        # `token "x"` is a sentence about tokens; `PASSWORD 'x'` is SQL.
        said = not separator.isspace() or key.lower().startswith(("pass", "pwd"))
        secret = said and _is_quoted_secret(key, value)
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
    padded = value.endswith("=") and len(value) % 4 == 0
    base64 = _mixed_case(value) and ("/" in value or "+" in value or padded)
    if _SECRET_WORD.search(value) and _mostly_words(value) and not base64:
        return False
    digits = len(_DIGIT.findall(value))
    if digits == len(value):
        return key.lower().startswith(("pass", "pwd"))
    if digits:
        return base64 or not (_JOINT.search(value) and _mostly_words(value))
    return (assigned or (base64 and padded)) and value.isascii()


def _looks_made(value: str, least: int = 16) -> bool:
    """Whether a short value reads like a machine's: digits among letters, and no words that make up most of it."""
    return (
        len(value) >= least
        and bool(_DIGIT.search(value))
        and not value.isdecimal()
        and not _REFERENCE.search(value)
        and not _mostly_words(value)
    )


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
