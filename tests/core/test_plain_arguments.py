"""Parts of a command that are kept: options with plain values, and nothing that looks private."""

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traceviz.core.plain_arguments import HIDDEN, is_plain, names_here, plain_command

NAMES = ("adalove", "ann", "gpu-node-17")


def shown(line: str) -> str:
    return plain_command(shlex.split(line), NAMES)


@pytest.mark.parametrize(
    "line",
    [
        "python train.py --batch-size 64 --lr=3e-4 --amp --dtype bf16 --arch resnet50",
        "torchrun --nproc_per_node=2 --nnodes 1 train.py --compile -j4 -b 128",
        "python -u -m pkg.train trainer.max_epochs=3 +model.name=resnet50 --betas 0.9,0.999 --size 3x224x224",
        "env OMP_NUM_THREADS=4 python train.py config.yaml --max-tokens 512 --tokenizer gpt2-medium --cache 8GB",
        "python train.py --device-id 1 --optimizer efficientnetv2b0 --offset -1.5 --steps 10:30 --version 2.13.0",
    ],
)
def test_5_commands_of_plain_options_are_kept_whole(line):
    assert shown(line) == line


@pytest.mark.parametrize(
    ("argument", "kept"),
    [
        ("--data /home/adalove/imagenet", "--data …/imagenet"),
        ("--data ../shared/run/images", "--data …/images"),
        ("--model meta-llama/Llama-2-7b", "--model …/Llama-2-7b"),
        ("--out /home/bob", "--out …"),
        ("--out ~", "--out …"),
        ("--out 'C:\\Users\\bob'", "--out …"),
        ("--data s3://bucket/images", "--data …"),
        ("--store https://example.org/x", "--store …"),
        ("--to-whom bob@example.org", "--to-whom …"),
        ("--user bob", "--user …"),
        ("--student adalove", "--student …"),
        ("--student ann", "--student …"),
        ("--channel channels", "--channel channels"),
        ("--master_addr 10.0.0.7", "--master_addr …"),
        ("--x 10.0.0.7", "--x …"),
        ("--x 00:11:22:33:44:55", "--x …"),
        ("--api-key 12345", "--api-key …"),
        ("--apiKey=word", "--apiKey=…"),
        ("--hub hf_abcdefghijklmnop", "--hub …"),
        ("--commit a1b2c3d4", "--commit …"),
        ("--x k3J9xQ2mZ8", "--x …"),
        ("--x kJhGtRfDeSwAqZxCvBnMlKjHgF", "--x …"),
        ("--x 550e8400-e29b-41d4-a716-446655440000", "--x …"),
        ("--account 123456", "--account …"),
        ("--phone-of 4915112345678", "--phone-of …"),
        ("--x 'Dear Bob, hello'", "--x …"),
        ("'{\"a\": 1}'", "…"),
        ("bob", "…"),
        ("-psecret", "-p…"),
        ("--gpu-node-17", "--…"),
        ("--adalove=3", "--…=3"),
        ("WANDB_API_KEY=word", "WANDB_API_KEY=…"),
        ("adalove=3", "…=3"),
        ("--x ''", "--x …"),
    ],
)
def test_of_34_arguments_only_what_tells_nothing_private_is_kept(argument, kept):
    assert shown(f"python train.py {argument}") == f"python train.py {kept}"


def test_code_is_no_plain_argument_and_neither_is_what_it_is_given():
    assert shown("python -c 'import x' --steps 3 secret") == "python -c … --steps 3 …"
    assert shown("bash -lc 'python train.py --token word'") == "bash -lc …"
    assert shown("bash -lc train") == "bash -lc …"


def test_what_was_shortened_once_stays_as_it_is_and_other_commands_are_not_plain():
    lines = ["python train.py --data …/imagenet --user … --x=…", "… train.py …"]
    assert [is_plain(line) for line in lines] == [True, True]
    others = ["python train.py --data /home/ann/x", "python train.py --token word", "cat secrets", "python train.py  x"]
    assert [is_plain(line) for line in others] == [False] * 4


PARTS = [
    "--x",
    "-c",
    "python",
    "bash",
    "--token",
    "train.py",
    "-5",
    "--a=b",
    "a.b=3",
    "--",
    "-",
    "~/x",
    "/home/ann",
    "…/x",
    "_=",
]


@settings(max_examples=200)
@given(st.lists(st.sampled_from(PARTS) | st.text("abAB01._-/=~@:,+ …\\é", max_size=12), min_size=1, max_size=7))
def test_shortening_twice_is_shortening_once(command):
    assert is_plain(plain_command(command, NAMES))


def test_a_command_of_1000_options_is_cut_at_500_characters():
    command = plain_command(["python", *(f"--option-{number}" for number in range(1000))])
    assert (len(command) <= 500, command.endswith(f" {HIDDEN}"), is_plain(command)) == (True, True, True)


def test_names_are_those_of_user_and_machine_without_common_words(monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "gpu-node-17.example.org")
    environment = {"USER": "adalove", "LOGNAME": "root", "HOME": "/home/adalove"}
    assert names_here(environment) == ("adalove", "gpu-node-17.example.org", "gpu-node-17")
