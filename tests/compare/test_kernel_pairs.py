"""Pairs of equal kernels: names as profilers print them, and matches from the surest to the least sure."""

from __future__ import annotations

from fractions import Fraction

import pytest

from traceviz.compare.kernel_pairs import How, Match, PerStep, base_name, matches, spelling

NSYS = (
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase &, "
    "at::native::GeluType)::[lambda() (instance 2)]::operator ()() const::[lambda(c10::BFloat16) (instance 1)], "
    "std::array<char *, (unsigned long)2>>(int, T2, T3)"
)
CUPTI = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, "
    "at::native::GeluType)::{lambda()#2}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >"
    "(int, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}::operator()() "
    "const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul>)"
)


def per_step(calls, ns, group="gemm"):
    return PerStep(Fraction(calls), Fraction(ns), group)


def matched(base, new):
    return {(match.base, match.new, match.how) for match in matches(base, new)}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (NSYS, CUPTI),
        ("void k<(bool)1, (bool)0>(T1 *)", "void k<true, false>(float*)"),
        ("a::<unnamed>::k<(int)-2>(int)", "a::(anonymous namespace)::k<-2>(int)"),
        ("nccl(Storage<(unsigned long)4096>)", "nccl(Storage<4096ul>)"),
    ],
)
def test_one_name_is_spelled_in_two_ways(first, second):
    assert first != second
    assert spelling(first) == spelling(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("k<4, float>(T2)", "k<8, float>(T2)"),
        ("k<4, float>(T2)", "k<4, double>(T2)"),
        (NSYS, NSYS.replace("instance 2", "instance 3")),
        ("volta_sgemm_128x64_nt", "volta_sgemm_128x64_nn"),
    ],
)
def test_other_template_arguments_are_another_spelling(first, second):
    assert spelling(first) != spelling(second)


@pytest.mark.parametrize("name", ["", "(", "()", ")(", "<<<", "k[/x]", "(" * 5000])
def test_any_name_has_a_spelling(name):
    assert spelling(name) or not name


def test_the_base_name_has_no_template_arguments():
    assert base_name(NSYS) == base_name(CUPTI) == "at::native::vectorized_elementwise_kernel"


def test_names_come_before_spellings_and_spellings_before_families():
    base = {"a": per_step(1, 10), NSYS: per_step(1, 20), "old_gemm": per_step(2, 30)}
    new = {"a": per_step(9, 10), CUPTI: per_step(7, 20), "new_gemm": per_step(2, 5)}
    assert matched(base, new) == {
        (("a",), ("a",), How.NAME),
        ((NSYS,), (CUPTI,), How.SPELLING),
        (("old_gemm",), ("new_gemm",), How.FAMILY),
    }


def test_a_side_that_has_only_base_names_gets_all_of_them_together():
    base = {"k<float>": per_step(1, 30), "k<int>": per_step(1, 20)}
    assert matched(base, {"k": per_step(2, 40)}) == {(("k<float>", "k<int>"), ("k",), How.BARE)}


def test_other_template_arguments_match_where_calls_and_family_do():
    base = {"k<float>": per_step(2, 30), "k<int>": per_step(5, 20)}
    new = {"k<half>": per_step(2, 10), "k<short>": per_step(6, 20, "copy")}
    assert matched(base, new) == {
        (("k<float>",), ("k<half>",), How.BASE_NAME),
        (("k<int>",), (), How.NOT),
        ((), ("k<short>",), How.NOT),
    }


def test_of_a_family_the_largest_are_paired_first():
    base = {"slow": per_step(1, 100), "quick": per_step(1, 10)}
    new = {"small": per_step(1, 5), "large": per_step(1, 50)}
    assert matched(base, new) == {(("slow",), ("large",), How.FAMILY), (("quick",), ("small",), How.FAMILY)}


@pytest.mark.parametrize("family", ["unknown", "", "fusion", "elementwise", "copy"])
def test_families_that_say_nothing_are_never_paired(family):
    assert matched({"a": per_step(1, 10, family)}, {"b": per_step(1, 10, family)}) == {
        (("a",), (), How.NOT),
        ((), ("b",), How.NOT),
    }


@pytest.mark.parametrize(
    ("calls", "how"),
    [
        (19, How.FAMILY),
        (Fraction(189, 10), How.NOT),
        (21, How.FAMILY),
        (Fraction(400, 19), How.FAMILY),
        (Fraction(401, 19), How.NOT),
    ],
)
def test_calls_are_alike_within_a_twentieth_of_the_larger(calls, how):
    assert {match.how for match in matches({"a": per_step(20, 1)}, {"b": per_step(calls, 1)})} == {how}


def test_of_kernels_called_about_as_often_the_largest_is_taken():
    new = {"b1": per_step(19, 5), "b2": per_step(20, 7), "b3": per_step(21, 9), "b4": per_step(30, 99)}
    base = {"a1": per_step(20, 100), "a2": per_step(20, 90), "a3": per_step(20, 80), "a4": per_step(20, 70)}
    pairs = {match.base: match.new for match in matches(base, new) if match.base}
    assert pairs == {("a1",): ("b3",), ("a2",): ("b2",), ("a3",): ("b1",), ("a4",): ()}


def test_nothing_against_nothing():
    assert matches({}, {}) == ()
    assert matches({"a": per_step(1, 1)}, {}) == (Match(("a",), (), How.NOT),)
