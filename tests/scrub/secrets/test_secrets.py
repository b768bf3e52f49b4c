"""Detection of secrets, and their removal from a text."""

import pytest

from traceviz.scrub.secrets.redactor import Redactor
from traceviz.scrub.secrets.secrets import (
    base_name,
    secrets_of_arguments,
    secrets_of_text,
    secrets_of_variable,
    variables_of_block,
)
from traceviz.scrub.secrets.values import Secret, secrets_of_identity


def hunted(name: str, value: str) -> set[str]:
    return {secret.text.decode() for secret in secrets_of_variable(name.encode(), value.encode())}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("WANDB_API_KEY", "hunter", {"hunter"}),  # six letters, but named like a secret
        ("DB_PASSWORD", "hunt5", set()),  # five are too few to look for
        ("MODE", "training", set()),  # a plain word is the vocabulary of the program
        ("RUN", "exp-17", {"exp-17"}),
        ("RUN", "exp17", set()),  # five characters
        ("CUDA_VERSION", "11.6.2.010", set()),
        ("JOB_ID", "16618307", set()),
        ("PATH", "/usr/local/bin:/opt/nvidia/bin", set()),
        ("CUDA_HOME", "/usr/local/cuda", set()),
        ("TOKENIZERS_PARALLELISM", "false", set()),
        ("LANG", "en_US.UTF-8", set()),
        ("LS_COLORS", "*.tar=01;31:*.tgz=01;31", set()),
        ("USER", "ada", {"ada"}),
        ("USER", "root", set()),
        ("HOSTNAME", "node17.example.org", {"node17.example.org", "node17"}),
        ("HOME", "/home/ada", {"/home/ada", "ada"}),
        ("HOME", "/root", set()),
        ("DATA", "/home/bob/set", {"bob"}),
    ],
)
def test_a_variable_gives_away_exactly_these_secrets(name: str, value: str, expected: set[str]) -> None:
    assert hunted(name, value) == expected


def test_values_of_16_plain_letters_are_distinctive_and_15_are_not() -> None:
    assert hunted("X", "a" * 16) == {"a" * 16}
    assert hunted("X", "a" * 15) == set()


def test_options_of_a_command_line_are_judged_like_variables() -> None:
    arguments = (
        b"train.py",
        b"in",
        b"summary:",
        b"events,",
        b"--api-key",
        b"abcdef",
        b"--epochs=100",
        b"--password=secret",
        b"resnet",
    )
    assert {secret.text for secret in secrets_of_arguments(arguments)} == {b"abcdef", b"secret"}


def test_an_environment_block_is_split_at_nul() -> None:
    assert variables_of_block(b"A=1\0B=x=y\0\0junk\0") == [(b"A", b"1"), (b"B", b"x=y")]


def test_identities_of_everybody_and_short_ones_are_not_looked_for() -> None:
    assert [list(secrets_of_identity(name)) for name in (b"root", b"vm", b"12345", b"")] == [[], [], [], []]


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (b"token ghp_0123456789abcdefABCD end", b"ghp_0123456789abcdefABCD"),
        (b"mail ada@example.org", b"ada@example.org"),
        (b"nic 0c:42:a1:7e:10:5f up", b"0c:42:a1:7e:10:5f"),
        (b"file /Users/grace/x", b"grace"),
        (b"postgres://ada:hunter2-zz@db/x", b"hunter2-zz"),
        (b"password=hunter2-zz", b"hunter2-zz"),
    ],
)
def test_shapes_give_secrets_away(text: bytes, secret: bytes) -> None:
    assert secret in {found.text for found in secrets_of_text(text)}


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        (b"load /home/ada/data/x.bin now", b"load [path]/x.bin now"),
        (b"cd /home/ada", b"cd [path]"),
        (b"cd /home/ada/ && ls", b"cd [path] && ls"),
        (b"/root", b"[path]"),
        (b"(lambda at /mnt/nas/k.cu:3:1)", b"(lambda at [path]/k.cu:3:1)"),
        (b"file:///home/ada/x", b"file://[path]/x"),
        (rb"C:\Users\ada\model.pt", b"[path]/model.pt"),
        (b"postgres://ada:pw@db/x", b"postgres://[removed]@db/x"),
        (b"from ada@example.org", b"from [removed]"),
        (b"[removed][removed]ada@example.org", b"[removed][removed][removed]"),
        (b"[INFO]ada@example.org", b"[INFO][removed]"),
        (b"sk-proj1234567890abcdef", b"[removed]"),
        (b"AKIAIOSFODNN7EXAMPLE", b"[removed]"),
        (b"nvapi-0123456789abcdefghij", b"[removed]"),
        (b"login password=hunter", b"login password=[removed]"),
        (b"DB_PASSWD: hunter22 ok", b"DB_PASSWD: [removed] ok"),
        (b'{"api_key": "abcdef0123"}', b'{"api_key": "[removed]"}'),
        (b"GET /?token=ab12cd34&x=1", b"GET /?token=[removed]&x=1"),
        (b"Authorization: Bearer abc.def-123", b"Authorization: Bearer [removed]"),
        # and what only looks like it
        (b"/job:localhost/replica:0/task:0/device:GPU:0", b"/job:localhost/replica:0/task:0/device:GPU:0"),
        (b"jit(train)/jit(main)/transpose", b"jit(train)/jit(main)/transpose"),
        (b"GET /v1/completions", b"GET /v1/completions"),
        (b"model/home/dense", b"model/home/dense"),
        (b"token: string", b"token: string"),
        (b"token=128 num_tokens=4096000", b"token=128 num_tokens=4096000"),
        (b"moe::token::dispatch7", b"moe::token::dispatch7"),
        (b"bearer channel", b"bearer channel"),
        (b"token: embedding2_out secret: hidden_layer_2", b"token: embedding2_out secret: hidden_layer_2"),
        (b"attention (key: value_proj1)", b"attention (key: value_proj1)"),
        (b"pthread_cond_wait@@GLIBC_2.3.2", b"pthread_cond_wait@@GLIBC_2.3.2"),
        (b"void f<(int)4, a::b>(int const*)", b"void f<(int)4, a::b>(int const*)"),
        (b"task-17 12:30:01", b"task-17 12:30:01"),
        (b"", b""),
    ],
)
def test_texts_without_known_secrets_lose_private_shapes_only(text: bytes, cleaned: bytes) -> None:
    assert Redactor().clean(text) == cleaned


def test_messages_of_a_profiler_lose_every_absolute_path() -> None:
    message = b"Loaded /opt/x/y.so and /weird/place/z, see 'nsys status'"
    assert Redactor().clean_message(message) == b"Loaded [path]/y.so and [path]/z, see 'nsys status'"


def test_folders_of_the_trace_teach_where_paths_begin() -> None:
    redactor = Redactor.of([Secret(b"/bigdisk/sd/ada7/run")])
    assert redactor.clean(b"open /bigdisk/other/file.h5") == b"open [path]/file.h5"
    assert Redactor().clean(b"open /bigdisk/other/file.h5") == b"open /bigdisk/other/file.h5"


def test_short_secrets_are_whole_words_and_of_a_word_that_holds_a_long_one_nothing_stays() -> None:
    redactor = Redactor.of([Secret(b"ann"), Secret(b"longsecret1")])
    assert redactor.clean(b"ann channel ann_3 xlongsecret1x") == b"[removed] channel [removed]_3 [removed]"


def test_the_longest_secret_wins() -> None:
    redactor = Redactor.of([Secret(b"secret-1"), Secret(b"secret-1-and-more")])
    assert redactor.clean(b"secret-1-and-more") == b"[removed]"


def test_hosts_and_users_are_found_in_any_case_and_other_values_as_they_are() -> None:
    host = secrets_of_variable(b"HOSTNAME", b"gpubox17.corp.example")
    redactor = Redactor.of([*host, *secrets_of_identity(b"Ada"), Secret(b"Token-99x")])
    assert (
        redactor.clean(b"HOST GPUBOX17.CORP.EXAMPLE GpuBox17 ADA ada")
        == b"HOST [removed] [removed] [removed] [removed]"
    )
    assert redactor.clean(b"TOKEN-99X Token-99x") == b"TOKEN-99X [removed]"
    assert {b"GPUBOX17", b"gpubox17.corp.example", b"ADA", b"ada"} <= set(redactor.spelled)
    assert b"token-99x" not in redactor.spelled


def test_of_an_address_whose_user_is_known_nothing_is_left() -> None:
    redactor = Redactor.of(secrets_of_identity(b"wolfgang"))
    assert redactor.clean(b"mail wolfgang@acme.example, wolfgang.x@acme.example") == b"mail [removed], [removed]"


def test_a_user_who_is_a_word_of_kernels_in_another_case_is_not_looked_for() -> None:
    assert Redactor.of(secrets_of_identity(b"Max"), [b"reduce_max_kernel"]).secrets == ()


def test_vocabulary_spares_possible_secrets_but_not_certain_ones() -> None:
    redactor = Redactor.of([Secret(b"gemm16x"), Secret(b"reduce1", certain=True)], [b"sm80_gemm16x", b"reduce1"])
    assert redactor.secrets == (b"reduce1",)


def test_a_home_folder_in_a_kernel_name_makes_its_user_no_vocabulary() -> None:
    redactor = Redactor.of([Secret(b"ada7lovelace")], [b"f<(lambda at /home/ada7lovelace/x.cu:1)>"])
    assert redactor.secrets == (b"ada7lovelace",)


@pytest.mark.parametrize(
    ("name", "module"),
    [
        (b"/any/where/lib.so", b"[path]/lib.so"),
        (b"[kernel.kallsyms]", b"[kernel.kallsyms]"),
        (b"C:\\a\\b.dll", b"[path]/b.dll"),
    ],
)
def test_modules_keep_their_base_name(name: bytes, module: bytes) -> None:
    assert Redactor().clean_module(name) == module


@pytest.mark.parametrize("name", [b"python3", b"/usr/bin/python3", b"./python3", b"C:\\x\\python3", b"/a/python3/"])
def test_programs_keep_their_base_name(name: bytes) -> None:
    assert base_name(name) == b"python3"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("tcp://10.0.0.7:6003", "tcp://[removed]:6003"),
        ("on 192.168.1.20.", "on [removed]."),
        ("34.83.195.179_6003", "[removed]_6003"),
        ("8.8.8.8:53", "[removed]:53"),
        ("ip-10-1-2-3", "[removed]"),
        ("fe80::1ff:fe23:4567:890a", "[removed]"),
        ("2001:db8:85a3:0:0:8a2e:370:7334", "[removed]"),
    ],
)
def test_addresses_of_machines_go(text: str, clean: str) -> None:
    assert Redactor().clean(text.encode()).decode() == clean


@pytest.mark.parametrize(
    "text",
    [
        *("cuDNN 8.9.2.26", "nsys 2022.4.2.1", "driver 525.105.17", "127.0.0.1:80", "0.0.0.0:1", "12:30:45"),
        *("at::native::add", "add::bed::fed::c0de", "c10::BFloat16", "2020:10:20", "/host:CPU", "1.2.3.4.5"),
    ],
)
def test_versions_times_and_names_are_no_addresses(text: str) -> None:
    assert Redactor().clean(text.encode()).decode() == text


def test_what_stands_for_a_removed_value_is_no_secret() -> None:
    assert Redactor.of([Secret(b"[removed]", certain=True), Secret(b"[path]/data-2024.bin")]).secrets == ()
