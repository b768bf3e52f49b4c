"""Places in source: folders of public libraries stay, those of a program and its user do not."""

import pytest

from traceviz.scrub.secrets.properties import source_file, without_folder


@pytest.mark.parametrize(
    ("frame", "kept"),
    [
        (b"/home/ada/.venv/lib/python3.11/site-packages/torch/nn/m.py(1): g", b"torch/nn/m.py(1): g"),
        (b"logging/__init__.py(1724): level", b"logging/__init__.py(1724): level"),
        (b"/usr/lib/python3.11/json/encoder.py(3): f", b"json/encoder.py(3): f"),
        (b"json/client_x/train.py(3): f", b"train.py(3): f"),
        (b"/home/ada/logging/train.py(3): f", b"train.py(3): f"),
        (b"$/home/ada/train.py:3 f", b"$train.py:3 f"),
    ],
)
def test_frames_keep_folders_of_libraries_only(frame, kept):
    assert without_folder(frame) == kept


@pytest.mark.parametrize(
    ("file", "origin", "kept"),
    [
        ("torch/utils/data/dataloader.py", "library", "torch/utils/data/dataloader.py"),
        ("client_x/loader.py", "library", "loader.py"),
        ("torch/client_x/train.py", "program", "train.py"),
        ("json/encoder.py", "standard", "json/encoder.py"),
        ("json/encoder.py", "", "encoder.py"),
        ("/home/ada/json/x.py", "standard", "x.py"),
        ("C:\\ada\\x.py", "library", "x.py"),
        ("train.py", "program", "train.py"),
    ],
)
def test_files_of_stacks_keep_folders_of_what_everybody_may_know(file, origin, kept):
    assert source_file(file, origin) == kept
