"""GPUs through a library that behaves like NVML, as far as it is used."""

# ruff: noqa: N802 (the names are those of the library)

from types import SimpleNamespace

import pytest

from traceviz.collectors.sampler.collector import ResourcesCollector
from traceviz.collectors.sampler.gpu import find_gpus, has_gpu


class FakeNvml:
    """Two GPUs: the second reports neither its power nor its traffic."""

    class NVMLError(Exception):
        """An error of the library."""

    def __init__(self, *, broken=False):
        self.broken = broken

    def nvmlInit(self):
        if self.broken:
            raise self.NVMLError("Driver Not Loaded")

    def nvmlShutdown(self):
        self.closed = True

    def nvmlDeviceGetCount(self):
        return 2

    def nvmlDeviceGetHandleByIndex(self, number):
        return number

    def nvmlDeviceGetName(self, gpu):
        return b"H200" if gpu else "H100"

    def nvmlDeviceGetUUID(self, gpu):
        return f"GPU-{gpu}abc"

    def nvmlDeviceGetMemoryInfo(self, gpu):
        return SimpleNamespace(total=1000, used=250 + gpu)

    def nvmlDeviceGetUtilizationRates(self, gpu):
        return SimpleNamespace(gpu=40 + gpu)

    def nvmlDeviceGetPowerUsage(self, gpu):
        if gpu == 1:
            raise self.NVMLError("Not Supported")
        return 123_400

    def nvmlDeviceGetClockInfo(self, gpu, kind):
        return {1: 1500, 2: 2600}[kind]

    def nvmlDeviceGetTemperature(self, gpu, sensor):
        return 61

    def nvmlDeviceGetPcieThroughput(self, gpu, counter):
        if gpu == 1:
            raise self.NVMLError("Not Supported")
        return {0: 3, 1: 7}[counter]


def readings(gpus, gpu):
    return {reading.metric.name: reading.value for reading in gpus.readings() if reading.gpu == gpu}


def test_every_gpu_is_measured_as_far_as_it_tells():
    gpus = find_gpus(library=FakeNvml())
    assert readings(gpus, 0) == {
        "GPU utilisation": 40.0,
        "GPU memory used": 250.0,
        "GPU power": 123.4,
        "SM clock": 1500.0,
        "memory clock": 2600.0,
        "GPU temperature": 61.0,
    }
    assert "GPU power" not in readings(gpus, 1)
    assert [gpu.facts()["name"] for gpu in gpus.devices] == ["H100", "H200"]


def test_traffic_is_in_bytes_per_second():
    traffic = [(r.metric.name, r.value, r.gpu) for r in find_gpus(library=FakeNvml()).traffic()]
    assert traffic == [("PCIe receive", 7168.0, 0), ("PCIe transmit", 3072.0, 0)]


@pytest.mark.parametrize(
    ("visible", "numbers"),
    [(None, [0, 1]), ("1", [1]), ("0,1", [0, 1]), ("GPU-1a", [1]), ("", []), ("-1", []), ("MIG-GPU-0abc/1/0", [0, 1])],
)
def test_only_gpus_that_the_program_sees_are_measured(visible, numbers):
    gpus = find_gpus(visible, FakeNvml())
    assert [gpu.number for gpu in gpus.devices] == numbers
    assert bool(gpus.reason) == (not numbers)


@pytest.mark.parametrize(
    ("file", "there"),
    [
        ("dev/nvidia0", True),
        ("proc/driver/nvidia/gpus/0000:01:00.0/information", True),
        ("usr/lib/wsl/lib/libnvidia-ml.so.1", True),
        ("dev/nvidiactl", False),
        ("dev/nvidia-uvm", False),
    ],
)
def test_the_control_device_alone_is_no_gpu(tmp_path, monkeypatch, file, there):
    for name in ("proc/self/stat", file):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.setattr("traceviz.collectors.sampler.collector.find_spec", lambda name: None)
    state = ResourcesCollector(tmp_path).availability()
    assert (has_gpu(tmp_path), "nvidia-ml-py" in state.fix, state.is_ready) == (there, there, True)
    assert ("there is no NVIDIA GPU" in state.detail) == (not there)


def test_a_driver_that_is_not_loaded_is_a_reason_and_no_error():
    gpus = find_gpus(library=FakeNvml(broken=True))
    assert (gpus.devices, gpus.reason) == ((), "NVML says: Driver Not Loaded")
    gpus.close()
