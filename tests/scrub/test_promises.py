"""Private texts of every kind, in every column of every format, in any context: none is left.

Each trace has all kinds at once, in one of twelve contexts. The scrubbed copy is searched by bytes, packed and
unpacked, for the contents of each text; so are an archive of the source, and the page of the scrubbed copy.
"""

import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from urllib.parse import quote

import pytest

from tests.archive.everything import everything
from tests.parsers.kineto.files import complete, trace
from tests.scrub.planted import BUILDERS
from traceviz.api import report_on, to_text
from traceviz.archive.archive import Archive
from traceviz.archive.runners.local import SerialRunner
from traceviz.scrub import scrub
from traceviz.scrub.secrets.redactor import Redactor
from traceviz.scrub.secrets.secrets import secrets_of_text
from traceviz.scrub.secrets.shapes import KINDS
from traceviz.scrub.secrets.values import Secret

LETTERS = "bcdfghjkmnpqrstvwxz"
CAPITALS = "BCDEFGHJKLMNPQRSTUVWXYZ"
HEX = "0123456789abcdef"


@dataclass(frozen=True)
class Planted:
    """A private text.

    Args:
        kind: The kind that recognises it.
        text: The text, as a program writes it.
        body: What of it must be nowhere in the output.
        adjoins: Whether it is recognised after a letter, too.
        sought: What of it is looked for in all other texts, if that is not the body.
    """

    kind: str
    text: str
    body: str
    adjoins: bool = False
    sought: str | None = None

    @property
    def alone(self):
        """The text that is planted elsewhere."""
        return self.body if self.sought is None else self.sought


def planted(random):
    """Return one private text and more of each kind."""

    def some(count, letters=LETTERS + "23456789"):
        return "".join(random.choices(letters, k=count))

    def name():
        return f"{some(4, LETTERS)}{random.randint(100, 999)}{some(2, LETTERS)}"

    def secret():
        return f"{some(5)}{random.randint(1_000, 9_999)}{some(4)}"

    def four(first):
        return f"{first}.{random.randint(101, 255)}.{random.randint(101, 255)}.{random.randint(101, 255)}"

    def mac():
        return ":".join(f"{random.randint(0, 9)}{random.choice(HEX)}" for _ in range(6))

    user, host, number = name(), f"gpu-node-{random.randint(1_000, 99_999)}", random.randint(1_000_000, 9_999_999)
    private, public, labelled = four(10), four(203), four(8)
    address = f"2001:db8:{some(4, HEX[1:])}::{some(4, HEX[1:])}"
    key, key_line, uuid = some(40), some(64), f"{some(8, HEX)}-1234-1234-1234-{some(12, HEX)}"
    basic = "YWxpY2U6" + some(4) + "aHVu"
    return [
        Planted(
            "private keys", f"-----BEGIN RSA PRIVATE KEY-----\n{key_line}\n-----END RSA PRIVATE KEY-----", key_line
        ),
        Planted(
            "SSH public keys", f"ssh-rsa AAAAB3NzaC1yc2E{key} {name()}@{name()}", key, sought=f"AAAAB3NzaC1yc2E{key}"
        ),
        *(
            Planted("access tokens", start + (body := some(length, CAPITALS)), body, adjoins=True, sought=start + body)
            for start, length in (
                *(
                    ("ghp_", 36),
                    ("github_pat_", 40),
                    ("hf_", 34),
                    ("glpat-", 20),
                    ("dckr_pat_", 27),
                    ("AKIA", 16),
                    ("npm_", 36),
                ),
                *(("xoxb-", 40), ("nvapi-", 40), ("sk-proj-", 48), ("sk-", 48), ("sk_live_", 24)),
            )
        ),
        Planted("access tokens", f"SG.{some(22)}.{(body := some(43))}", body, adjoins=True, sought=""),
        Planted(
            "access tokens", f"eyJhbGciOiJIUzI1NiJ9.eyJ{some(20)}.{(body := some(30))}", body, adjoins=True, sought=""
        ),
        Planted("passwords", f"password={(body := secret())}", body, adjoins=True),
        Planted("passwords", f"PGPASSWORD={(body := secret())}", body, adjoins=True),
        Planted("passwords", f"Passwd: '{(body := secret())}'", body, adjoins=True),
        Planted("passwords", f'"passphrase" : "{(body := secret())} {some(6)}"', body, sought=""),
        Planted("passwords", f"api_key={(body := secret())}", body),
        Planted("passwords", f"token={(body := secret())}", body),
        Planted("options with a password", f"--password {(body := secret())}", body),
        Planted("options with a password", f"--api-key {(body := secret())}", body),
        Planted("headers of HTTP", f"Authorization: Basic {basic}", basic),
        Planted("headers of HTTP", f"Authorization: Bearer {(body := secret())}", body),
        Planted("cookies", f"Cookie: session={(body := some(32))}", body),
        Planted("URLs", f"https://{name()}:{(body := secret())}@db/x", body),
        Planted("URLs", f"wss://{(body := name())}.example.org/x", body, sought=f"{body}.example.org"),
        Planted("URLs", f"s3://{(body := name())}/run/x.bin", body, sought=""),
        Planted("e-mail addresses", f"{(body := name())}@example.org", body, sought=f"{body}@example.org"),
        Planted("users", f"user={(body := name())}", body),
        Planted("machines", host, host),
        Planted("machines", f"hostname: {(body := name())}", body),
        Planted("network and hardware addresses", private, private, adjoins=True),
        Planted("network and hardware addresses", f"{private}:{random.randint(1_000, 9_999)}", private, adjoins=True),
        Planted("network and hardware addresses", public, public),
        Planted("network and hardware addresses", f"host {labelled}", labelled),
        Planted("network and hardware addresses", address, address),
        Planted("network and hardware addresses", (body := mac()), body, adjoins=True),
        Planted("ids of GPUs", f"GPU-{uuid}", uuid, adjoins=True),
        Planted("telephone numbers", f"+1-415-{number}", f"415-{number}", sought=""),
        Planted("home folders", f"/home/{user}/x/data.bin", user),
        Planted("home folders", f"/Users/{(body := name())}/x.bin", body),
        Planted("home folders", f"/data/users/{(body := name())}/x.bin", body),
        Planted("home folders", f"~{(body := name())}/x.bin", body),
        Planted("home folders", f"C:\\Users\\{(body := name())}\\x.bin", body),
        Planted("home folders", f"\\\\{(body := name())}\\share\\x.bin", body),
    ]


SURROUNDINGS = {
    "space": " {} ",
    "quotes": '"{}"',
    "underscore": "_{}_",
    "colon": "peer:{}: x",
    "slash": "(a) {}/ b",
    "percent": "percent",
    "escapes": "escapes",
    "brackets": "[{}]",
    "letters": "x{}",
    "nothing": "{}",
    "lines": "a\n{}\nb",
    "unicode": "é{}é",
}


def around(form, text):
    """Return ``text`` in a surrounding."""
    if form == "percent":
        return f"https://localhost/?q={quote(text, safe='')}%26x"
    if form == "escapes":
        return json.dumps({"a": f"b\n{text}\n"})
    return form.replace("{}", text)


def suits(secret, name):
    """Return whether a kind is promised in a surrounding."""
    if name == "letters":
        return secret.adjoins
    if name == "underscore":  # a folder after a word is part of a name, and so is what a word ends with
        return not secret.text.startswith(("~", "\\", "/data", "--"))
    return not (name == "colon" and secret.text.startswith("~"))


def traces(builder, seed, name, folder):
    """Return a source with all kinds in a context, their bodies alone, and texts that the output must not hold."""
    secrets = [secret for secret in planted(Random(seed)) if suits(secret, name)]
    form = SURROUNDINGS[name]
    shaped = [around(form, secret.text) for secret in secrets]
    alone = [around(form, secret.alone) for secret in secrets if secret.alone and name != "letters"]
    return BUILDERS[builder](folder, [*shaped, *alone], shaped), secrets


def left(folder, secrets):
    """Return kinds, texts and places of what is left in a folder."""
    found = []
    for where, content in everything(folder):
        folded = content.lower()
        found += [(secret.kind, secret.text, where) for secret in secrets if secret.body.lower().encode() in folded]
    return found


def scrubbed(builder, seed, name):
    """Return the texts left in the scrubbed copy of a trace."""
    with tempfile.TemporaryDirectory() as place:
        source, secrets = traces(builder, seed, name, Path(place))
        assert not_planted(source, secrets) == []
        return left(scrubbed_copy(source).parent, secrets)


def scrubbed_copy(source):
    output = source.parent / "out" / f"clean{''.join(source.suffixes)}"
    output.parent.mkdir()
    scrub(source, output)
    return output


def archived(builder, seed, name):
    """Return the texts left in an archive of a trace, in the page of its scrubbed copy, and in the copy."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        source, secrets = traces(builder, seed, name, folder)
        clean = scrubbed_copy(source)
        assert left(clean.parent, secrets) == []
        page = to_text(report_on(clean), "html").lower()
        assert Archive(folder / "archive").add(source, runner=SerialRunner()).added == 1
        of_page = [secret.text for secret in secrets if secret.body.lower() in page]
        return [*of_page, *left(folder / "archive", secrets)]


def not_planted(source, secrets):
    """Return the texts that the source does not hold: the test could not fail for them."""
    contents = [content.lower() for _, content in everything(source.parent if source.is_file() else source)]
    bodies = {secret.text: secret.body.lower().encode() for secret in secrets}
    return [
        text
        for text, body in bodies.items()
        if not any(body in content or quote(body).encode().lower() in content for content in contents)
    ]


def test_every_kind_is_planted():
    assert {secret.kind for secret in planted(Random(1))} == {kind.name for kind in KINDS}
    assert len(SURROUNDINGS) == 12


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_no_kind_is_left_in_a_text(name):
    for seed in range(6):
        secrets = [secret for secret in planted(Random(seed)) if suits(secret, name)]
        texts = [around(SURROUNDINGS[name], secret.text).encode() for secret in secrets]
        redactor = Redactor.of(found for text in texts for found in secrets_of_text(text))
        kept = [(secret.text, redactor.clean(text)) for secret, text in zip(secrets, texts, strict=True)]
        assert [
            (text, clean) for (text, clean), secret in zip(kept, secrets, strict=True) if secret.body.encode() in clean
        ] == []


@pytest.mark.parametrize("builder", BUILDERS)
def test_nothing_private_is_left_of_any_format(builder):
    """One surrounding, another for each format; all of each are below."""
    assert scrubbed(builder, 7, list(SURROUNDINGS)[list(BUILDERS).index(builder) + 1]) == []


def test_nothing_private_is_left_in_an_archive_nor_in_a_page():
    assert archived("nsys_database", 7, "percent") == []


def test_what_is_recognised_in_one_file_is_gone_from_all_files_of_the_folder(tmp_path):
    for name, text in (("a.pt.trace.json", "user=qvx417mk"), ("b.pt.trace.json", "load_qvx417mk of QVX417MK")):
        (tmp_path / name).write_bytes(trace([complete(text, 1, 2, category="user_annotation")]))
    scrub(tmp_path, tmp_path / "out")
    assert [where for where, content in everything(tmp_path / "out") if b"qvx417mk" in content.lower()] == []
    written = json.loads((tmp_path / "out/b.pt.trace.json").read_text())
    assert written["traceEvents"][0]["name"] == "load_[removed] of [removed]"


@pytest.mark.parametrize(
    ("name", "text", "clean"),
    [
        ("telemetry", "opentelemetrys-org telemetry_1", "opentelemetrys-org [removed]_1"),  # a plain word
        ("gpt17host", "opengpt17hosts-org", "[removed]-org"),  # nothing else is called so
        ("ann", "channel ann ANN_2", "channel [removed] [removed]_2"),
        ("ai", "train ai", "train ai"),  # too short to be looked for
        ("root", "root cause in uproot", "root cause in uproot"),  # a name that many have
    ],
)
def test_names_of_people_leave_no_holes_in_other_words(name, text, clean):
    redactor = Redactor.of(secrets_of_text(f"user={name}".encode()))
    assert redactor.clean(text.encode()).decode() == clean


def test_1_000_secrets_take_little_longer_than_10():
    texts = [f"step {number} of model/layer_{number % 7}/attention".encode() for number in range(3_000)]

    def seconds(count):
        redactor = Redactor.of(Secret(f"host{number:06}x".encode(), folds=True) for number in range(count))
        redactor.clean(b"")
        start = time.process_time()
        assert [redactor.clean(text) for text in texts] == texts
        return time.process_time() - start

    assert min(seconds(1_000) for _ in range(3)) < 4 * min(seconds(10) for _ in range(3))


@pytest.mark.slow
@pytest.mark.parametrize("name", SURROUNDINGS)
@pytest.mark.parametrize("builder", BUILDERS)
def test_nothing_private_is_left_in_any_surrounding(builder, name):
    """Each format and surrounding has texts of its own."""
    assert archived(builder, 9 + 100 * list(BUILDERS).index(builder) + list(SURROUNDINGS).index(name), name) == []
