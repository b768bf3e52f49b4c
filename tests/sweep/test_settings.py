"""Sweep files: settings, the runs of each, their order, and errors in a file."""

import time
import tomllib
from pathlib import Path

import pytest

from traceviz.core.errors import UnreadableError, UsageError
from traceviz.sweep.file import parse_sweep, read_sweep
from traceviz.sweep.orders import folder_name, plan
from traceviz.sweep.settings import settings_of, task_of

STUDY = """
command = "python train.py --batch-size {batch} {options}"
repeats = 2
time-limit = "10 min"
collect = ["--steps", "10:60"]
environment = { THREADS = "{batch}" }
[tags]
study = "cnn"
[settings]
batch = [32, 512]
[[settings.approach]]
name = "plain"
[[settings.approach]]
name = "prefetch"
options = "--prefetch 2 'a b'"
environment = { OMP_NUM_THREADS = 1 }
collect = ["--with", "torch"]
time-limit = 90
[[exclude]]
batch = 512
approach = "prefetch"
[[include]]
batch = 1024
approach = "prefetch"
"""


def sweep(text):
    return parse_sweep(tomllib.loads(text), "s.toml")


def planned(text, *, seed=1, repeats=None):
    return plan(sweep(text), "s", Path("/work"), seed, repeats)


def refusal(text):
    with pytest.raises(UsageError) as error:
        planned(text)
    return str(error.value)


def test_4_combinations_less_1_and_1_more_are_4_settings():
    tags = [tuple(setting.tags.values()) for setting in settings_of(sweep(STUDY))]
    assert tags == [("32", "plain"), ("32", "prefetch"), ("512", "plain"), ("1024", "prefetch")]


def test_a_value_with_a_name_brings_its_options_variables_collectors_and_limit():
    study = sweep(STUDY)
    plain, prefetch, *_ = settings_of(study)
    task = task_of(study, prefetch, 2)
    assert task.command == ("python", "train.py", "--batch-size", "32", "--prefetch", "2", "a b")
    assert task.environment == {"THREADS": "32", "OMP_NUM_THREADS": "1"}
    assert task.collect == ("--steps", "10:60", "--with", "torch")
    assert task.tags == {"study": "cnn", "batch": "32", "approach": "prefetch", "repeat": "2"}
    assert task.limit_s == 90
    other = task_of(study, plain, 1)
    assert other.command == ("python", "train.py", "--batch-size", "32")
    assert (other.environment, other.limit_s) == ({"THREADS": "32"}, 600)


def test_every_round_has_all_settings_in_an_order_that_its_seed_decides():
    text = 'command = "run {x}"\n[settings]\nx = [1, 2, 3, 4, 5, 6]'
    orders = [order.task.tags["x"] for order in planned(text, repeats=5).orders]
    rounds = [tuple(orders[start : start + 6]) for start in range(0, 30, 6)]
    assert {tuple(sorted(names)) for names in rounds} == {("1", "2", "3", "4", "5", "6")}
    assert len(set(rounds)) == 5
    assert orders == [order.task.tags["x"] for order in planned(text, repeats=5).orders]
    assert orders != [order.task.tags["x"] for order in planned(text, repeats=5, seed=2).orders]


def test_a_sweep_without_settings_has_1_run_for_each_repeat():
    whole = planned('command = ["sh", "-c", "exit {repeat}"]\nrepeats = 2\nname = "a b"')
    assert [order.task.command[2] for order in whole.orders] == ["exit 1", "exit 2"]
    assert [str(order.folder) for order in whole.orders] == [f"/work/traceviz-runs/a-b/run+{n}" for n in (1, 2)]


def test_folders_are_named_by_tags_and_differ_where_their_values_do():
    assert folder_name({"batch": "32", "approach": "prefetch"}, 1) == "batch=32+approach=prefetch+1"
    one, other = (folder_name({"path": path}, 1) for path in ("a/b", "a b"))
    assert one.startswith("path=a-b+")
    assert one != other
    assert len(folder_name({"x": "y" * 1000}, 3)) <= 140


def test_braces_and_switches_reach_the_command_as_they_are():
    whole = planned("""command = ["{x}", "{{}}", "a{x}b"]\nrepeats = 1\n[settings]\nx = [true, 0.5]""")
    commands = sorted(order.task.command for order in whole.orders)
    assert commands == [("0.5", "{}", "a0.5b"), ("true", "{}", "atrueb")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('comand = "a"', "s.toml: There is no key of a sweep 'comand'. Did you mean 'command'?"),
        ("repeats = 2", "s.toml has no command."),
        ('command = "a"\nrepeats = "2"', "s.toml at repeats: expected `int`, got `str`."),
        ('command = "a"\nrepeats = 0', "s.toml: repeats = 0 records nothing."),
        ('command = "a"\nrepeats = 1001', "s.toml: 1,001 repeats are more than the 1,000 that a sweep may have."),
        ('command = "a"\nrepeats = 1000000000', "1,000,000,000 repeats are more than the 1,000"),
        (f'command = "a {{x}}"\n[settings]\nx = {[*range(1001)]}', "1,001 values of x are more than the 1,000"),
        (
            'command = "a"\n[settings]\n' + "\n".join(f"x{number} = [1]" for number in range(33)),
            "33 tags in [settings] are more than the 32",
        ),
        (f'command = "a"\nexclude = {[{}] * 1001}', "1,001 entries of [[exclude]] are more than the 1,000"),
        (
            f'command = "a {{x}} {{y}}"\nrepeats = 1\n[settings]\nx = {[*range(101)]}\ny = {[*range(100)]}',
            "10,100 settings are more than the 10,000",
        ),
        (
            f'command = "a {{x}}"\nrepeats = 11\n[settings]\nx = {[*range(1000)]}',
            "1,000 settings × 11 repeats = 11,000 runs are more than the 10,000",
        ),
        (f'command = "a {"b" * 100_000} {{x}}"\nrepeats = 700\n[settings]\nx = [1]', "more than 64 million characters"),
        ('command = "a {batch}"', "There is no tag 'batch'."),
        ('command = "a {x!r}"\n[settings]\nx = [1]', "x"),
        ('command = "a {"', "has a brace too many"),
        ('command = "a \'b"', "cannot be split into words"),
        ('command = ""', "The command is empty."),
        ('command = "a {x}"\n[settings]\nx = ["\\u0000"]', "has a null character"),
        ('command = "a"\nenvironment = { "a=b" = 1 }', "'a=b' is no name of a variable"),
        ('command = "a"\ntime-limit = "soon"', "time-limit = 'soon' is no time."),
        ('command = "a"\ntime-limit = true', "time-limit = True is no time."),
        ('command = "a {x}"\n[settings]\nx = []', "The tag x has no values."),
        ('command = "a {x}"\n[settings]\nx = [1, 1]', "The tag x has the value 1 twice."),
        ('command = "a {x}"\n[settings]\noptions = [1]', "The tag 'options' cannot be one of a sweep."),
        ('command = "a"\n[settings]\nx = [1, 2]', "run the same command: a"),
        ('command = "a {x}"\n[settings]\nx = [1]\n[[exclude]]\nx = 1', "The sweep has no setting left."),
        ('command = "a {x}"\n[settings]\nx = [1]\n[[exclude]]\ny = 1', "which [[exclude]] names: 'y'"),
        ('command = "a {x}"\n[settings]\nx = [1]\n[[exclude]]\nx = 3', "which [[exclude]] names: '3'"),
        ('command = "a {x}"\n[settings]\nx = [{name = 1, optoins = "b"}]', "Did you mean 'options'?"),
        ('command = "a {x}"\n[settings]\nx = [{name = 1, options = "b"}]', "The command has no place for b"),
        ('command = "a {x}"\n[settings]\nx = [1]\n[[include]]\ny = 2', "There is no tag 'x'."),
        ('command = "a {x}"\n[settings]\nx = [1]\n[compare]\nperr = "x"', "Did you mean 'per'?"),
    ],
)
def test_a_mistake_is_named_with_its_place(text, said):
    assert said in refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        f"{'a.' * 200_000}a = 1",
        f"[{'a.' * 200_000}a]",
        f"a = {{ {'b . ' * 200_000}b = 1 }}",
        '"a".' * 200_000 + '"a" = 1',
        f"x = [1]\n{'a.' * 16}a = 1",
    ],
    ids=["key", "table", "inline", "quoted", "17-parts"],
)
def test_a_key_of_many_parts_is_refused_at_once(tmp_path, text):
    (tmp_path / "s.toml").write_text(f'command = "true"\n{text}')
    begun = time.process_time()
    with pytest.raises(UsageError, match=r"has a key of [\d,]+ parts; a sweep has none of more than 16\."):
        read_sweep(tmp_path / "s.toml")
    assert time.process_time() - begun < 2


DOTTED = """
# DOTS " '
command = 'run DOTS "'
name = '''a
DOTS = 1'''
runs = "DOTS # \\" x"
"""


def test_dots_in_texts_and_comments_are_no_parts_of_keys(tmp_path):
    dots = ".".join("abcdefghijklmnopqrstuvwxyz")
    (tmp_path / "s.toml").write_text(DOTTED.replace("DOTS", dots))
    read = read_sweep(tmp_path / "s.toml")
    assert (read.command, read.name, read.runs) == (f'run {dots} "', f"a\n{dots} = 1", f'{dots} # " x')


def test_a_sweep_of_the_most_runs_is_planned_in_seconds():
    begun = time.process_time()
    whole = planned(f'command = "a {{x}}"\nrepeats = 10\n[settings]\nx = {[*range(1000)]}')
    assert len(whole.orders) == 10_000
    assert time.process_time() - begun < 20


def test_a_file_that_is_none_or_no_toml_is_refused(tmp_path):
    with pytest.raises(UnreadableError, match=r"none\.toml cannot be read\. No such file"):
        read_sweep(tmp_path / "none.toml")
    for content in (b"a = ", b"\xff\xfe", b"a = " + b"[" * 100_000):
        (tmp_path / "s.toml").write_bytes(content)
        with pytest.raises(UsageError, match="is no TOML"):
            read_sweep(tmp_path / "s.toml")
    (tmp_path / "s.toml").write_bytes(b"#" * (2 << 20))
    with pytest.raises(UsageError, match="larger than 1 MiB"):
        read_sweep(tmp_path / "s.toml")
