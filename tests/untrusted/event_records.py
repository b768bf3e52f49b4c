"""Event files of TensorBoard: records that TensorFlow 2.21 and tensorboard 2.21 wrote, and records from literals."""

import struct

from traceviz.untrusted.event_files import masked_crc

TENSORFLOW = (
    b">\0\0\0\0\0\0\0\xd9\xd2@\xe7\t\0\0\0f\t\xc1\xdaA\x1a\rbrain.Event:2R$\n"
    b'"tensorflow.core.util.events_writer2l\xf8\xa3'
    b'G\0\0\0\0\0\0\0\xba\xc3\xfb\x9b\t\x01j\x1cf\t\xc1\xdaA\x10\t*:\n8\n\x1devaluation_loss_vs_iterationsB\n\x08\x01\x12\0"'
    b"\x04\xc0\\3>J\x0b\n\t\n\x07scalars\x933\x95\xb4"
    b"2\0\0\0\0\0\0\0$\x19V\xec\t\x18>\x1ff\t\xc1\xdaA*'\n%\n\nepoch_lossB\n\x08\x01\x12\0\"\x04\xc0\\3>J\x0b\n\t\n\x07scalars"
    b"!\x08\xb9l"
)
"""The version of the file, a loss at step 9, and one of epoch 0, as tensors."""
TENSORBOARD = (
    b"\x1e\0\0\0\0\0\0\0\xd9\xdc\x122\t\xe6(\x05c\t\xc1\xdaA*\x13\n\x11\n\nLoss/train\x15\0\0\x80?\xd4\xb3\xc5\xb4"
)
"""A value of PyTorch's SummaryWriter."""
AT_S = 1_795_433_868.0
"""Time of day of literals."""


def record(message: bytes) -> bytes:
    """Return a message with its length and checksums."""
    length = struct.pack("<Q", len(message))
    return length + struct.pack("<I", masked_crc(length)) + message + struct.pack("<I", masked_crc(message))


def field(number: int, content: bytes) -> bytes:
    """Return a field with a text, a message or packed numbers."""
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def varint(number: int) -> bytes:
    """Return a number of variable length."""
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def event(value: bytes, step: int = 0, at_s: float = AT_S) -> bytes:
    """Return a record of an event with one value in its summary."""
    return record(b"\x09" + struct.pack("<d", at_s) + b"\x10" + varint(step) + field(5, field(1, value)))


def simple(tag: str, number: float) -> bytes:
    """Return a value as PyTorch writes it."""
    return field(1, tag.encode()) + b"\x15" + struct.pack("<f", number)


def tensor(tag: str, content: bytes, plugin: str = "scalars") -> bytes:
    """Return a value as TensorFlow writes it; ``content`` are the fields of the tensor."""
    metadata = field(9, field(1, field(1, plugin.encode()))) if plugin else b""
    return field(1, tag.encode()) + field(8, content) + metadata
