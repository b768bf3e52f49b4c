"""Kinds of private texts that are recognised by their shape, in any place.

A kind finds the parts of a text to remove, their replacement, and the secrets in them to search in all other texts of
the trace. In ``/home/ada/x.bin``, the folder is removed, and ``ada`` is searched. All kinds read a text as written and
decoded (:mod:`traceviz.scrub.secrets.spellings`). The table in ``docs/privacy.md`` is generated from :data:`KINDS`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from traceviz.core.plain_arguments import CREDENTIAL_SHAPE, CREDENTIAL_SIGNS
from traceviz.scrub.secrets.addresses import is_machine, names_machine, spans_of_addresses, spans_of_machines
from traceviz.scrub.secrets.spellings import any_of, readings
from traceviz.scrub.secrets.values import Secret, is_common, is_distinctive, secrets_of_address, secrets_of_identity

REMOVED = b"[removed]"
PATH = b"[path]"


class Hit(NamedTuple):
    """A private part of a text.

    Args:
        begin: Its first byte.
        end: The byte after it.
        instead: The replacement.
        secrets: Values in it that are searched in all other texts.
    """

    begin: int
    end: int
    instead: bytes = REMOVED
    secrets: tuple[Secret, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of private text.

    Args:
        name: A noun for the kind.
        promise: The forms that are recognised, for the documentation.
        signs: Lower-case texts. Every text with this kind contains at least one.
        find: Finds private parts in a text.
    """

    name: str
    promise: str
    signs: tuple[bytes, ...]
    find: Callable[[bytes], Iterator[Hit]]


# --- keys and tokens -------------------------------------------------------------------------------------------------

_PRIVATE_KEY = re.compile(
    rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[^-]++|-(?!----END))*+(?:-----END[A-Z0-9 ]{0,60}-----)?"
)
_KEY_LINE = re.compile(rb"[A-Za-z0-9+/=]{16,}")
_PUBLIC_KEY = re.compile(
    rb"(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-nistp\d{3}"
    rb"|sk-ssh-ed25519@openssh\.com)[ +]{1,4}(?P<key>AAAA[A-Za-z0-9+/=]{16,})"
    rb"(?:[ +]{1,4}(?P<user>[\w.\-]{1,64})@(?P<host>[\w.\-]{1,128}))?"
)
_TOKEN = re.compile(CREDENTIAL_SHAPE.encode())
_HARDWARE_ID = re.compile(
    rb"(?:GPU|MIG|DLA)-(?:GPU-)?(?P<id>[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})(?:/\d{1,3}/\d{1,3})?", re.IGNORECASE
)


def _private_keys(text: bytes) -> Iterator[Hit]:
    for match in _PRIVATE_KEY.finditer(text):
        lines = _KEY_LINE.findall(match.group())
        yield _hit(match, secrets=(Secret(line, certain=True) for line in lines))


def _public_keys(text: bytes) -> Iterator[Hit]:
    for match in _PUBLIC_KEY.finditer(text):
        named = (*secrets_of_identity(match["user"] or b""), *secrets_of_identity(match["host"] or b""))
        yield _hit(match, secrets=(Secret(match["key"], certain=True), *named))


def _tokens(text: bytes) -> Iterator[Hit]:
    return (_hit(match, secrets=(Secret(match.group(), certain=True),)) for match in _TOKEN.finditer(text))


def _hardware_ids(text: bytes) -> Iterator[Hit]:
    for match in _HARDWARE_ID.finditer(text):
        yield _hit(match, secrets=(Secret(match["id"], certain=True, folds=True),))


# --- values that are stated to be secret -----------------------------------------------------------------------------

_SURE = rb"pass(?:word|wd|phrase|code)s?|(?<![a-z])pwd"
_KEYS = (
    rb"(?:api|access|secret|private|account|auth|encryption|signing|subscription|shared|ssh)[_\-. ]?key(?:[_\-]?id)?"
    rb"|client[_\-. ]?secret"
)
_WEAK = (
    rb"secret|token|credentials?|(?<![a-z])session(?:[_\-]?(?:id|key))?|[a-z]{0,4}sess(?:ion)?id"
    rb"|(?<![a-z])sig(?:nature)?"
    rb"|x-amz-[a-z\-]{1,24}|(?<![a-z])auth"
)
_EQUALS = rb"[\"']?\]?\s{0,4}(?:=>|={1,2}|:(?!:))\s{0,4}"
_BARE = rb"[^\s\"'&;,<>{}|]*[^\s\"'&;,<>{}|()\[\]]"
_VALUE = rb"(?:\"(?P<double>[^\"\n]{1,512})\"|'(?P<single>[^'\n]{1,512})'|[\"']?(?P<bare>%b))" % _BARE
_STATED = re.compile(
    rb"(?:(?P<sure>%b)|(?P<keys>%b)|(?P<weak>%b))%b%b" % (_SURE, _KEYS, _WEAK, _EQUALS, _VALUE), re.IGNORECASE
)
_OPTION = re.compile(
    rb"(?<![A-Za-z0-9\-])--?(?P<name>[A-Za-z][\w\-]{0,40})\s{1,4}(?:\"(?P<double>[^\"\n]{1,512})\""
    rb"|'(?P<single>[^'\n]{1,512})'"
    rb"|(?P<bare>[^\s\"'\-][^\s\"']*))"
)
_SURE_OPTION = re.compile(rb"(?:.*[_\-])?(?:pass(?:word|wd|phrase|code)?|pwd|pw)", re.IGNORECASE)
_KEY_OPTION = re.compile(rb"(?:.*[_\-])?(?:token|secret|key|api[_\-]?key|auth|credentials?|cookie)", re.IGNORECASE)
_USER_AND_PASSWORD = re.compile(rb"(?<!\S)(?:-u|--user)\s{1,4}(?P<user>[^\s:\"'\-][^\s:\"']{0,64}):(?P<bare>[^\s\"']+)")
_AUTHORIZATION = re.compile(
    rb"(?:proxy-)?authorization%b[\"']?(?:(?:digest|aws4-hmac-sha256|hawk)\s(?P<line>[^\r\n\"][^\r\n]*)"
    rb"|(?P<scheme>(?:basic|bearer|token|negotiate|ntlm|apikey|key)\s{1,4})?(?P<bare>[^\s\"',;]{4,}))" % _EQUALS,
    re.IGNORECASE,
)
_BEARER = re.compile(rb"(?<![A-Za-z])bearer[ :=]{1,3}[\"']?(?P<bare>[\w\-.~+/=]{6,})", re.IGNORECASE)
_BASIC = re.compile(rb"(?<![A-Za-z])basic[ :=]{1,3}[\"']?(?P<bare>[A-Za-z0-9+/]{8,}={0,2})", re.IGNORECASE)
_COOKIE = re.compile(rb"(?:set-)?cookies?%b[\"']?(?P<line>[^\r\n\"']{3,})" % _EQUALS, re.IGNORECASE)
_COOKIE_VALUE = re.compile(rb"=([^;\s]+)")
_NOTHING = frozenset(b"none null nil true false str string text bytes optional required yes no on off empty".split())
"""Words after ``password:`` that are not a password."""
_THREE_DIGITS = re.compile(rb"(?:[^\d]*\d){3}")
_MIXED_WORD = re.compile(rb"[A-Za-z]+\d[A-Za-z0-9]*")
_LONG_WORD = re.compile(rb"[A-Za-z0-9+/=]{24,}")


def _stated(text: bytes) -> Iterator[Hit]:
    for match in _STATED.finditer(text):
        value, name = _group(match), (match["weak"] or b"").lower()
        if match["sure"] is not None:
            is_folder = value.startswith(b"/") and match["sure"].lower() == b"pwd"  # the shell's folder
            goes = value.lower() not in _NOTHING and not is_folder
        elif match["keys"] is not None:
            goes = is_distinctive(value, 6)
        else:
            # ``token: layer_2`` is an identifier, ``secret: hunter2z`` is not.
            looks_random = _THREE_DIGITS.match(value) or _LONG_WORD.fullmatch(value)
            is_mixed = name == b"secret" and _MIXED_WORD.fullmatch(value)
            goes = is_distinctive(value, 6) and bool(looks_random or is_mixed)
        if goes:
            yield from _value_hits(match, value)


def _options(text: bytes) -> Iterator[Hit]:
    for match in _OPTION.finditer(text):
        value = _group(match)
        is_sure = _SURE_OPTION.fullmatch(match["name"]) is not None
        if is_sure or (_KEY_OPTION.fullmatch(match["name"]) is not None and is_distinctive(value, 6)):
            yield from _value_hits(match, value)
    for match in _USER_AND_PASSWORD.finditer(text):
        begin, end = match.start("user"), match.end("bare")
        yield Hit(begin, end, REMOVED, (*_sought(match["bare"]), *secrets_of_identity(match["user"])))


def _authorizations(text: bytes) -> Iterator[Hit]:
    for match in _AUTHORIZATION.finditer(text):
        value = match["line"] or match["bare"]
        if match["line"] or match["scheme"] or is_distinctive(value, 6):
            yield from _value_hits(match, value)
    for match in _BEARER.finditer(text):
        if is_distinctive(match["bare"], 6):
            yield from _value_hits(match, match["bare"])
    for match in _BASIC.finditer(text):
        if _is_user_and_password(match["bare"]):
            yield from _value_hits(match, match["bare"])


def _cookies(text: bytes) -> Iterator[Hit]:
    for match in _COOKIE.finditer(text):
        line = match["line"]
        values = _COOKIE_VALUE.findall(line)
        if values or is_distinctive(line.strip(), 6):
            sought = (found for value in values or [line.strip()] for found in _sought(value))
            yield Hit(*match.span("line"), REMOVED, tuple(sought))


def _is_user_and_password(value: bytes) -> bool:
    try:
        decoded = base64.b64decode(value + b"=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    return b":" in decoded and decoded.isascii() and decoded.decode().isprintable()


def _group(match: re.Match[bytes]) -> bytes:
    return match["double"] or match["single"] or match["bare"]


def _value_hits(match: re.Match[bytes], value: bytes) -> Iterator[Hit]:
    """Yield a value at the end of a match, without the closing quote; nothing if it was already removed."""
    if not value.startswith((REMOVED[:-1], PATH[:-1])):
        begin = match.string.rindex(value, match.start(), match.end())
        yield Hit(begin, begin + len(value), REMOVED, tuple(_sought(value)))


def _sought(value: bytes) -> Iterator[Secret]:
    """Yield a stated value as a secret. A plain word is searched only if it is not in the name of a kernel."""
    if len(value) >= 6 and not is_common(value) and not (value.isdigit() and len(value) < 8):
        yield Secret(value, certain=is_distinctive(value, 6))


# --- people and machines ---------------------------------------------------------------------------------------------

_EMAIL = re.compile(rb"(?<![\w.+\-])[\w.+\-]+@[A-Za-z0-9\-]+(?:\.[A-Za-z0-9\-]+)*\.[A-Za-z]{2,}")
_LOGIN = re.compile(
    rb"(?<![\w.\-])(?:(?:ssh|scp|sftp|rsync"
    rb"|mosh)\s{1,4}(?:-[A-Za-z]\S{0,20}\s{1,4}){0,4}(?P<user>[\w.\-]{1,64})@(?P<host>[\w.\-]{1,128})"
    rb"|(?P<owner>[\w.\-]{1,64})@(?P<place>[\w.\-]{1,128}):(?=[~/]))"
)
_USER = re.compile(
    rb"(?:(?<![a-z])|(?<=[_\-]))(?:user(?:[_\-]?name)?|login|logname|owner)"
    rb"(?:=[\"']?|[\"']\s{0,4}[:=]\s{0,4}[\"'])(?P<bare>[A-Za-z][\w.\-]*)",
    re.IGNORECASE,
)
_HOST = re.compile(
    rb"(?<![a-z/])(?:host(?:[_\-]?name)|master[_\-]?addr|nodelist|node[_\-]?name|host(?==))"
    rb"(?:=[\"']?|[\"']?\s{0,4}:\s{0,4}[\"']?)(?P<bare>[A-Za-z0-9][A-Za-z0-9.\-]*)",
    re.IGNORECASE,
)
_URL = re.compile(rb"(?<=://)(?:(?P<login>[^\s/\"'<>\[]*)@)?(?P<host>[A-Za-z0-9][A-Za-z0-9.\-]*)?")
_SCHEME = re.compile(rb"[A-Za-z0-9+.\-]*$")
_LONGEST_SCHEME = 16
_STORES = frozenset(
    b"s3 s3a s3n gs gcs abfs abfss wasb wasbs az adl hdfs webhdfs viewfs r2 oss cos obs dbfs nfs smb cifs file".split()
)
"""Schemes of URLs that name a folder. The bucket is its first part."""
_STORED = re.compile(rb"(?:/[^/\s\0\"'<>|:;,(){}]+)*/?")
_PHONE = re.compile(rb"(?<![0-9A-Za-z)\]])\+[1-9]\d{0,2}(?:[ .\-]?\(\d{1,4}\))?(?:[ .\-]?\d{2,4}){2,5}(?!\d)")
_MOST_DIGITS, _LEAST_DIGITS = 15, 9


def _emails(text: bytes) -> Iterator[Hit]:
    for match in _EMAIL.finditer(text):
        yield _hit(match, secrets=(Secret(match.group(), certain=True, folds=True),))
    for match in _LOGIN.finditer(text):
        user, host = match["user"] or match["owner"], match["host"] or match["place"]
        begin = match.start("user") if match["user"] else match.start("owner")
        yield Hit(begin, begin + len(user) + 1 + len(host), REMOVED, (*secrets_of_identity(user), *_hosts(host)))


def _users(text: bytes) -> Iterator[Hit]:
    for match in _USER.finditer(text):
        secrets = tuple(secrets_of_identity(match["bare"]))
        if secrets and match["bare"].lower() not in _NOTHING:
            yield Hit(*match.span("bare"), REMOVED, secrets)


def _machines(text: bytes) -> Iterator[Hit]:
    for begin, end in spans_of_machines(text):
        yield Hit(begin, end, REMOVED, tuple(_hosts(text[begin:end])))
    for match in _HOST.finditer(text):
        if is_distinctive(match["bare"], 4) and not match["bare"].isdigit():
            yield Hit(*match.span("bare"), REMOVED, tuple(_hosts(match["bare"])))


def _hosts(name: bytes) -> Iterator[Secret]:
    """Yield the names of a machine to search: its full name, and its first label if that can only be a machine."""
    label = name.partition(b".")[0]
    for found in secrets_of_identity(name):
        if found.text == name or names_machine(label):
            yield found


def _urls(text: bytes) -> Iterator[Hit]:
    for match in _URL.finditer(text):
        begin = match.start()
        scheme = _SCHEME.search(text, max(0, begin - 3 - _LONGEST_SCHEME), begin - 3)
        host = match["host"] or b""
        if match["login"] and match["login"] != b"git":
            user, _, password = match["login"].partition(b":")
            of_password = [Secret(password, certain=True)] if is_distinctive(password, 6) else []
            yield Hit(*match.span("login"), REMOVED, (*of_password, *secrets_of_identity(user)))
        if scheme is not None and scheme.group().lower() in _STORES:
            # Of a store, the folder is removed: in ``s3://bucket/a/x.bin`` the name of the file is kept.
            whole = _STORED.match(text, match.end())
            path = text[begin : whole.end() if whole else match.end()].rstrip(b"/")
            folder = path.rpartition(b"/")[0]
            if match.end() > begin and path:
                yield (
                    Hit(begin, begin + len(folder) + 1, PATH + b"/") if folder else Hit(begin, begin + len(path), PATH)
                )
        elif host and is_machine(host):
            yield Hit(*match.span("host"), REMOVED, tuple(_hosts(host)))


def _addresses(text: bytes) -> Iterator[Hit]:
    for begin, end in spans_of_addresses(text):
        yield Hit(begin, end, REMOVED, tuple(secrets_of_address(text[begin:end])))


def _phones(text: bytes) -> Iterator[Hit]:
    for match in _PHONE.finditer(text):
        digits = sum(48 <= byte < 58 for byte in match.group())
        if _LEAST_DIGITS <= digits <= _MOST_DIGITS:
            yield _hit(match, secrets=(Secret(match.group(), certain=True),))


# --- places ----------------------------------------------------------------------------------------------------------

_ROOTS = (
    rb"home|homes|Users|root|mnt|media|p?scratch\d*|localscratch|gpfs\w*|lustre\w*|global|nfs\w*|data|work|workspace"
    rb"|workspaces"
    rb"|tmp|var|srv|storage|projects?|private|Volumes|opt|usr|etc|lib|lib64|run|proc|cluster|export|nethome|users|u"
    rb"|fs\d*|autofs"
    rb"|net|afs|eos|cvmfs|ceph\w*|beegfs\w*|wekafs|efs|fsx|dbfs"
)
_END = rb"[^/\s\0\"'<>|:;,(){}\\]"
_USER_END = rb"[^/\s\0\"'<>|:;,(){}\\%?&#=*`$!]"
_START = rb"(?:(?<=://)|(?<![\w.\-/\]]))"
_HOME = re.compile(
    rb"(?:(?<![A-Za-z>])(?<!\[path\])(?<!\[removed\])|(?<=-[A-Za-z])|(?<=\\[nrtbf]))"
    rb"/(?:home|homes|nethome|Users)/(?P<user>%b+)(?:/%b+)*/?" % (_USER_END, _END)
)
_ANY_PATH = re.compile(rb"(?<![\w.\-/\]:])/%b+(?:/%b+)+/?" % (_END, _END))
_TILDE = re.compile(rb"(?<![\w~/.)\]])~(?P<user>[A-Za-z][\w.\-]*)(?:/%b+)+/?" % _END)
_NAME = rb"[^\\/\s\0\"'<>|:;,*?]+(?: [^\\/\s\0\"'<>|:;,*?]+){0,3}"
_WINDOWS = re.compile(
    rb"(?<![A-Za-z])[A-Za-z]:(?:[\\/](?=Users[\\/])|\\|(?<=[A-Z]:)/)(?:%b[\\/])*(?:[^\\/\s\0\"'<>|:;,]+)?" % _NAME,
    re.IGNORECASE,
)
_SHARE = re.compile(rb"(?<![\\\w])\\\\(?P<host>[A-Za-z0-9][\w.\-]+)\\[^\\/\s\0\"'<>|:;,]+(?:\\[^\\/\s\0\"'<>|:;,]+)*")
_OWNED = re.compile(rb"(?:(?<=[/\\])(?:home|homes|Users|users|nethome|user/[a-z])|\A/u)[/\\](?=([^/\\]+))")
_PERSONAL_FOLDER = re.compile(
    rb"(?:.*[/\\])?(?:home|homes|Users|users|nethome|user/[a-z])[/\\][^/\\]+[/\\]?|/u/[^/]+/?|/root/?"
    rb"|/(?:p?scratch\d*|gpfs\w*|lustre\w*)/[^/.]+/?",
    re.IGNORECASE | re.DOTALL,
)
_FIRST_FOLDER = re.compile(rb"/([\w.\-]+)/[^/]")


def path_pattern(roots: Iterable[bytes] = ()) -> re.Pattern[bytes]:
    """Return a pattern of absolute paths for names of ranges and kernels: only below system folders and ``roots``.

    ``/job:localhost/task:0`` and ``/v1/completions`` are not paths.
    """
    known = b"|".join([_ROOTS, *map(re.escape, roots)])
    return re.compile(rb"%b/(?:%b)(?:/%b+)+/?|%b/root(?![\w/])" % (_START, known, _END, _START))


def first_folder(path: bytes) -> bytes | None:
    """Return the first folder of an absolute path with at least two names."""
    match = _FIRST_FOLDER.match(path)
    return match.group(1) if match else None


def any_paths(text: bytes) -> Iterator[Hit]:
    """Yield absolute paths with any root. This is for texts of a profiler, where nothing else looks like a path."""
    return (_folder(match) for match in _ANY_PATH.finditer(text))


def _places(text: bytes) -> Iterator[Hit]:
    """Yield home folders and shares, in any context."""
    if b"/" in text:
        yield from (_folder(match) for match in _HOME.finditer(text))
        if b"~" in text:
            yield from (_folder(match, match["user"]) for match in _TILDE.finditer(text))
    if b":\\" in text or b":/" in text:
        yield from (_folder(match) for match in _WINDOWS.finditer(text))
    if b"\\\\" in text:
        yield from (_folder(match, match["host"]) for match in _SHARE.finditer(text))


def _folder(match: re.Match[bytes], owner: bytes = b"") -> Hit:
    """Return the folder of a path, without the base name. A home folder includes its last part, the user's name."""
    path = match.group()
    owners = [owner] if owner else _OWNED.findall(path)
    secrets = tuple(secret for name in owners for secret in secrets_of_identity(name))
    bare = path.rstrip(b"/\\")
    if _PERSONAL_FOLDER.fullmatch(path):
        return _hit(match, PATH, secrets)
    base = max(bare.rfind(b"/"), bare.rfind(b"\\")) + 1
    return Hit(match.start(), match.start() + base, PATH + b"/", secrets)


def _hit(match: re.Match[bytes], instead: bytes = REMOVED, secrets: Iterable[Secret] = ()) -> Hit:
    return Hit(match.start(), match.end(), instead, tuple(secrets))


# --- all kinds -------------------------------------------------------------------------------------------------------

KINDS = (
    Kind("private keys", "`-----BEGIN ... PRIVATE KEY-----` and all up to its end", (b"private key",), _private_keys),
    Kind("SSH public keys", "`ssh-ed25519 AAAA...`, with the user and host after it", (b"aaaa",), _public_keys),
    Kind(
        "access tokens",
        "of AWS, Docker, GitHub, GitLab, Google, Hugging Face, npm, NVIDIA, OpenAI, PyPI, SendGrid, Slack, Stripe "
        "and others, by "
        "how they start; JSON web tokens; webhooks of Slack and Discord",
        tuple(map(str.encode, CREDENTIAL_SIGNS)),
        _tokens,
    ),
    Kind(
        "passwords",
        "any text after `password=`, `passwd:`, `passphrase`, `pwd` (also in quotes, after `PGPASSWORD` and other "
        "names that "
        "end so); texts after `api_key`, `access_key`, `client_secret` that are no word and no number; texts after "
        "`token`, "
        "`secret`, `session`, `signature` that look random",
        (b"pass", b"pwd", b"key", b"secret", b"token", b"credential", b"sess", b"sig", b"x-amz", b"auth"),
        _stated,
    ),
    Kind(
        "options with a password", "`--password x`, `--token x`, `--api-key x`, `-u user:x`", (b"--", b"-u"), _options
    ),
    Kind(
        "headers of HTTP",
        "`Authorization:` with its scheme, `Bearer x`, and `Basic` with a user and password",
        (b"authorization", b"bearer", b"basic"),
        _authorizations,
    ),
    Kind("cookies", "all after `Cookie:` and `Set-Cookie:`", (b"cookie",), _cookies),
    Kind(
        "URLs",
        "user and password; the host, unless it is a word (`localhost`) or a public site (`github.com`); of a store "
        "(`s3://`, "
        "`gs://`, `hdfs://`, `file://`) bucket and folders, which become `[path]`",
        (b"://",),
        _urls,
    ),
    Kind("e-mail addresses", "`ada@example.org`, and logins: `ssh ada@node`, `ada@node:/data`", (b"@",), _emails),
    Kind("users", "after `user=`, `username=`, `login=`, `owner=`", (b"user", b"login", b"logname", b"owner"), _users),
    Kind(
        "machines",
        "`gpu-node-17`, `dgx03`, `ip-10-0-0-7.ec2.internal`: words for machines and a number, with their domain; "
        "names of "
        "internal networks; names of machines after `host=`, `hostname:`, `connect to`",
        (
            *(b"-", b"dgx", b"hgx", b"nid", b"host", b"server", b"peer", b"connect", b"endpoint", b"addr", b"node"),
            *(b".internal", b".local", b".lan", b".corp", b".intranet"),
        ),
        _machines,
    ),
    Kind(
        "network and hardware addresses",
        "IPv4 (see *Addresses and versions*), IPv6, of network adapters (`02:42:ac:11:00:0d`); fingerprints of keys",
        (b".", b":", b"-"),
        _addresses,
    ),
    Kind("ids of GPUs", "`GPU-` or `MIG-` and a UUID", (b"gpu-", b"mig-", b"dla-"), _hardware_ids),
    Kind("telephone numbers", "in the international form: `+1-415-555-0199`", (b"+",), _phones),
    Kind(
        "home folders",
        "below `/home`, `/Users`, `/nethome`, also after digits and `_`; `~ada/x`; `C:\\Users\\ada`; shares "
        "(`\\\\server\\x`)",
        (b"/", b"\\"),
        _places,
    ),
)
"""Kinds of private texts, in the order of the documentation."""
_SIGNS = re.compile(any_of(sign for kind in KINDS for sign in kind.signs if len(sign) > 2))
_OF_SIGNS_ONLY = tuple(kind for kind in KINDS if any(len(sign) <= 2 for sign in kind.signs))
"""Kinds with short signs, which are tried even if :data:`_SIGNS` does not match."""
_PATHS = path_pattern()


def hits(text: bytes, paths: re.Pattern[bytes] = _PATHS) -> Iterator[Hit]:
    """Yield the private parts of a text by their shape, in no order. They may overlap.

    Args:
        text: The text.
        paths: Pattern of absolute paths whose folders are removed (see :func:`path_pattern`).
    """
    for reading in readings(text):
        folded = reading.text.lower()
        kinds = KINDS if _SIGNS.search(folded) else _OF_SIGNS_ONLY
        found = [kind.find(reading.text) for kind in kinds if any(sign in folded for sign in kind.signs)]
        if b"/" in folded:
            found.append(map(_folder, paths.finditer(reading.text)))
        for hit in chain.from_iterable(found):
            yield Hit(*reading.place(hit.begin, hit.end), hit.instead, hit.secrets)
