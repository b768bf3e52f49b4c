"""Facts that an export states about its capture: versions, options, clock, and (on request) host and command line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from traceviz.parsers.nsys.mapping import Evidence
from traceviz.parsers.shared.cupti import cuda_version
from traceviz.parsers.shared.events.source_tables import RawTables
from traceviz.trace.names.framework_signs import stated_versions
from traceviz.trace.rows_to_table import stated_integer

_PROCESS_OPTION = re.compile(r"^PROCESS_\d+:")
_DRIVER_DIGITS = re.compile(r"^(\d{3})(\d{2,3})(\d{2})$")


@dataclass(frozen=True, slots=True)
class Capture:
    """Facts about the capture.

    Args:
        export: META_DATA_EXPORT, or EXPORT_META_DATA of schemas 2.9.1 to 3.1.2; empty before.
        options: Rows (name, value) of META_DATA_CAPTURE (since 3.4.0) in their order, without environment variables.
        system: TARGET_INFO_SYSTEM_ENV, without the environment.
        session_start_unix_ns: Wall-clock time of the session's start.
        framework_versions: Versions of frameworks in the environment, by framework; the rest of the environment is not
            kept.
    """

    export: Mapping[str, str] = field(default_factory=dict)
    options: tuple[tuple[str, str], ...] = ()
    system: Mapping[str, str] = field(default_factory=dict)
    session_start_unix_ns: int | None = None
    framework_versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def product(self) -> str | None:
        """Name of the program that exported, if stated."""
        return self.export.get("EXPORT_PRODUCT_NAME", "").removeprefix("NVIDIA ") or None

    @property
    def driver_version(self) -> str | None:
        """Driver version; older captures write 470.103.01 as ``47010301``."""
        stated = self.system.get("NvDriverVersion", "")
        packed = _DRIVER_DIGITS.match(stated)
        return ".".join(packed.groups()) if packed else stated if "." in stated else None

    @property
    def cuda_version(self) -> str | None:
        """CUDA version of the driver; 11.6 is written as ``11060``."""
        number = stated_integer(self.system.get("CudaDriverVersion"))
        return cuda_version(number) if number and number > 0 else None

    @property
    def command(self) -> str | None:
        """Command line of the first process."""
        words = [
            value
            for name, value in self.options
            if name == "PROCESS_0:COMMAND" or name.startswith("PROCESS_0:ARGUMENT_")
        ]
        return " ".join(words) or None

    @property
    def host(self) -> str | None:
        """Name of the machine."""
        return self.system.get("Hostname") or dict(self.options).get("DEVICE_DISPLAY_NAME")

    def zero_unix_ns(self, zero_ns: int) -> int | None:
        """Return the wall-clock time of the raw time ``zero_ns``.

        Raw times are relative to the session's start unless the export was made with ``--ts-normalize``. They may
        include a shift (``--ts-shift``).
        """
        shift = stated_integer(self.export.get("EXPORT_PARAM_TIME_SHIFT")) or 0
        if self.export.get("EXPORT_PARAM_TIME_NORMALIZE") == "true":
            return zero_ns - shift
        return None if self.session_start_unix_ns is None else self.session_start_unix_ns + zero_ns - shift

    def shows(self, evidence: Evidence, tables: frozenset[str]) -> bool:
        """Return whether the capture could contain the table of ``evidence``."""
        options = {(_PROCESS_OPTION.sub("", name), value) for name, value in self.options}
        return bool(options & evidence.capture) or any(name.startswith(evidence.tables) for name in tables)


def read_capture(raw: RawTables) -> Capture:
    """Collect the facts; facts that the version lacks stay empty."""
    exported = [row for table in ("META_DATA_EXPORT", "EXPORT_META_DATA") for row in _pairs(raw, table)]
    sessions = raw.small("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",))
    captured = _pairs(raw, "META_DATA_CAPTURE")
    variables = (value.partition("=")[::2] for name, value in captured if "ENVIRONMENT" in name)
    return Capture(
        dict(exported),
        tuple((name, value) for name, value in captured if "ENVIRONMENT" not in name),
        {name: value for name, value in _pairs(raw, "TARGET_INFO_SYSTEM_ENV") if name != "DeviceEnvironment"},
        sessions[0]["utcEpochNs"] if sessions else None,
        stated_versions(variables),
    )


def _pairs(raw: RawTables, table: str) -> list[tuple[str, str]]:
    return [(row["name"] or "", row["value"] or "") for row in raw.small(table, (), ("name", "value"))]
