"""Sections of reports whose events change, and what became of them."""

from __future__ import annotations

from tests.compare.sections_of import STEADY, facts, section, table


def times_by_name(changes):
    return {change.name: (change.status, change.base_ns, change.new_ns) for change in changes}


def api_section(capture, steady):
    everything = table("", "name domain total_ns", *((name, "runtime", total) for name, total in capture))
    rows = ((name, "runtime", calls, total) for name, calls, total in steady)
    return section("cuda_api", everything, table(STEADY, "name domain calls total_ns", *rows))


def copy_section(*rows):
    return section("copies", table(STEADY, "kind calls total_ns bytes", *rows))


def input_section(share, *stages, verdict="highly input-bound"):
    inside = table("Inside the loader", "stage kind self_ns", ("decode", "op", 999))
    own = table("", "stage kind self_ns path", *((name, kind, waited, None) for name, kind, waited in stages))
    return section("input_pipeline", facts(verdict=verdict, input_share=share), inside, own)
