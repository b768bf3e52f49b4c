"""Signs that two sides run the same program, and signs that they do not: hand-made reports."""

from __future__ import annotations

import pytest

from tests.compare.sections_of import facts, kernels, run, section, side, table, tagged
from traceviz.compare.comparability import remarks
from traceviz.compare.compare import compare
from traceviz.compare.options import CompareOptions
from traceviz.compare.report.document import document
from traceviz.compare.work.ingredients import ingredients
from traceviz.compare.work.kinds import Kind, is_gradient, kind_of
from traceviz.compare.work.parameters import parameters
from traceviz.compare.work.programs import programs

PLAIN = CompareOptions()


def operators(*rows, shapes=(), **also):
    """Return rows of name, calls per step and time of their own per step; shapes of name, shapes and calls per step."""
    names = "name calls_per_step host_self_per_step_ns device_self_per_step_ns"
    grids = [table("", names, *[(*row, 0)[:4] for row in rows])]
    if shapes:
        grids.append(table("By shapes", "name shapes calls_per_step", *shapes))
    return section("operators", facts(**also), *grids)


def modules(*paths, source="calls of nn.Module"):
    return section("modules", facts(source=source), table("Exact", "path", *[(path,) for path in paths]))


CNN = (
    ("aten::conv2d", 20, 100),
    ("aten::convolution", 20, 100),
    ("aten::mkldnn_convolution", 20, 3000),
    ("aten::convolution_backward", 20, 4200),
    ("aten::addmm", 1, 600),
    ("aten::linear", 1, 0),
    ("aten::relu", 20, 2000),
)
"""Of 10,000 ns, 74 % are convolutions."""
LSTM = (
    ("aten::lstm", 1, 100),
    ("aten::mkldnn_rnn_layer", 2, 4000),
    ("aten::mkldnn_rnn_layer_backward", 2, 4000),
    ("aten::addmm", 1, 500),
    ("aten::add_", 9, 1400),
)


def sides(before, after, **about):
    made = (section_ if isinstance(section_, tuple) else (section_,) for section_ in (before, after))
    base, new = (run(12, *sections, about={"format": "kineto", **about}) for sections in made)
    return side("cnn", base), side("other", new)


def programs_of(before, after):
    return programs(*sides(before, after))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("aten::mkldnn_convolution", Kind.CONVOLUTION),
        ("aten::cudnn_convolution_add_relu", Kind.CONVOLUTION),
        ("aten::_slow_conv2d_forward", Kind.CONVOLUTION),
        ("mkldnn::_convolution_pointwise", Kind.CONVOLUTION),
        ("_MklNativeFusedConv2D", Kind.CONVOLUTION),
        ("Conv2DBackpropInput", Kind.CONVOLUTION),
        ("aten::addmm", Kind.PRODUCT),
        ("aten::_scaled_mm", Kind.PRODUCT),
        ("mkldnn::_linear_pointwise", Kind.PRODUCT),
        ("_FusedMatMul", Kind.PRODUCT),
        ("BatchMatMulV2", Kind.PRODUCT),
        ("aten::_scaled_dot_product_flash_attention", Kind.ATTENTION),
        ("aten::lstm", Kind.RECURRENT),
        ("CudnnRNNV3", Kind.RECURRENT),
        ("aten::relu", None),
        ("aten::comm", None),
        ("aten::native_batch_norm", None),
    ],
)
def test_the_kind_of_work_is_in_the_name_whichever_library_does_it(name, kind):
    assert kind_of(name) is kind


def test_gradients_are_told_in_both_frameworks():
    names = ("aten::convolution_backward", "Conv2DBackpropFilter", "aten::convolution", "Conv2D")
    assert [is_gradient(name) for name in names] == [True, True, False, False]


def test_one_convolution_recorded_as_several_operators_is_one():
    known = ingredients(side("cnn", run(12, operators(*CNN))))["operators"]
    assert known.calls == {Kind.CONVOLUTION: 20, Kind.PRODUCT: 1}
    assert known.share(Kind.CONVOLUTION) == pytest.approx(0.74)
    assert known.gradients == pytest.approx(0.42)


def test_a_convolution_that_mixed_precision_calls_twice_is_one():
    twice = [(name, calls * (1 + (name == "aten::conv2d")), time) for name, calls, time in CNN]
    assert programs_of(operators(*CNN), operators(*twice)).is_same


def test_a_cnn_against_an_lstm_is_not_judged_and_said_first_with_what_differs():
    base, new = sides(operators(*CNN), operators(*LSTM))
    compared = compare([base, new])
    assert compared.shown.judgement.outcome.value == "cannot judge"
    assert document(compared).verdict.sentence.startswith(
        "Cannot judge: the sides do different work. Convolutions take 74.0 % of operator time in cnn, and there are "
        "none in other; recurrent layers take 81.0 % of operator time in other, and there are none in cnn."
    )
    assert (compared.shown.remarks[0].code, compared.shown.remarks[0].forbids) == ("program", "verdict")
    vouched = compare([base, new], CompareOptions(same_work=True))
    assert vouched.shown.judgement.outcome.value == "no change"


def test_another_program_is_another_per_sample_as_well():
    pair = sides((operators(*CNN), tagged(batch="32")), (operators(*LSTM), tagged(batch="64")))
    assert remarks(*pair, CompareOptions(per="batch"))[0].code == "program"


@pytest.mark.parametrize(("calls", "is_other"), [(24, False), (25, True), (17, False), (16, True)])
def test_a_quarter_more_convolutions_are_another_program(calls, is_other):
    other = [(name, calls if count == 20 else count, time) for name, count, time in CNN]
    other[-1] = ("aten::relu", 20, 2000)
    found = programs_of(operators(*CNN), operators(*other))
    assert found.differences == ((f"convolutions per step: 20 in cnn and {calls} in other",) if is_other else ())


def test_another_library_is_the_same_work():
    cudnn = [(name.replace("mkldnn", "cudnn"), calls, time // 9) for name, calls, time in CNN]
    assert programs_of(operators(*CNN), operators(*cudnn)).is_same


def test_inference_is_not_compared_with_training():
    forward = [row for row in CNN if "backward" not in row[0]]
    found = programs_of(operators(*CNN), operators(*forward))
    assert found.differences == ("gradients are computed in cnn, and not in other",)


def test_attention_in_parts_is_attention():
    fused = (("aten::_scaled_dot_product_flash_attention", 4, 5000), ("aten::addmm", 16, 5000))
    parts = (("aten::bmm", 8, 3000), ("aten::_softmax", 4, 2000), ("aten::addmm", 16, 5000))
    plain = (("aten::relu", 8, 5000), ("aten::addmm", 16, 5000), ("aten::_log_softmax", 1, 10))
    assert programs_of(operators(*fused), operators(*parts)).differences == ()
    (said,) = programs_of(operators(*fused), operators(*plain)).differences
    assert said.startswith("attention takes 50.0 % of operator time in cnn, and other has none")


def test_operators_that_may_be_anything_prove_nothing():
    compiled = (("## Call CompiledFxGraph f1 ##", 1, 9000), ("aten::addmm", 1, 900))
    found = programs_of(operators(*CNN), operators(*compiled))
    assert (found.differences, found.is_same) == ((), False)


@pytest.mark.parametrize("known", [{"graph_unknown_share": 1.0}, {"attributed_share": 0.49}])
def test_operators_do_not_tell_of_work_that_is_not_theirs(known):
    assert ingredients(side("graphs", run(12, operators(*CNN, **known)))) == {}


def test_operators_without_matrices_are_compared_by_name():
    loaders = (("aten::to", 9, 9000), ("aten::stack", 9, 1000))
    sorters = (("aten::sort", 9, 9500), ("aten::stack", 9, 500))
    (said,) = programs_of(operators(*loaders), operators(*sorters)).differences
    assert said.startswith("hardly an operator is in both: 7.5 % of operator time; to takes most of cnn and sort")
    assert programs_of(operators(*loaders), operators(*loaders)).is_same


# ------------------------------------------------------------------------------------------- parameters, modules


def shaped(batch, width=64, calls=1):
    convolution = ("aten::conv2d", f"[[{batch},3,32,32],[{width},3,3,3],[{width}]]", calls)
    return operators(*CNN, shapes=[convolution, ("aten::linear", f"[[{batch},{width}],[10,{width}]]", calls)])


def test_other_parameters_are_named():
    (said,) = programs_of(shaped(32), shaped(32, width=48)).differences
    assert said == (
        "parameters: convolution [64, 3, 3, 3], linear [10, 64] only in cnn, convolution [48, 3, 3, 3], "
        "linear [10, 48] only in other"
    )


def test_the_same_parameters_are_the_same_model_whatever_operators_compute_with_them():
    grid = table("By shapes", "name shapes calls_per_step", ("aten::conv2d", "[[32,3,8,8],[64,3,3,3]]", 1))
    base, new = (section("operators", *operators(*rows).blocks, grid) for rows in (CNN, LSTM))
    assert programs_of(base, new).is_same


def test_the_weight_of_addmm_is_that_of_a_linear_layer_transposed():
    by_linear = operators(*CNN, shapes=[("aten::linear", "[[32,64],[10,64],[10]]", 1)])
    by_addmm = operators(*CNN, shapes=[("aten::addmm", "[[10],[32,64],[64,10],[],[]]", 1)])
    assert programs_of(by_linear, by_addmm).is_same


def codes(before, after, options=PLAIN):
    return {remark.code: remark for remark in remarks(*sides(before, after), options)}


def test_another_batch_is_told_by_the_shapes_of_inputs():
    remark = codes(shaped(32), shaped(64))["input-sizes"]
    assert remark.forbids == "verdict"
    assert remark.text.startswith("steps do different work (batch 32 against 64, by the shapes of inputs)")
    assert "input-sizes" not in codes(shaped(32), shaped(64), CompareOptions(per="batch"))


@pytest.mark.parametrize(("batch", "is_other"), [(32, False), (35, False), (36, True)])
def test_a_tenth_more_is_another_batch(batch, is_other):
    assert ("input-sizes" in codes(shaped(32), shaped(batch))) is is_other


def test_four_batches_of_8_are_as_much_as_one_of_32():
    assert codes(shaped(32), shaped(8, calls=4)).keys().isdisjoint({"input-sizes", "program", "operator-calls"})


@pytest.mark.parametrize("shapes", ["", "[]", "[[", "[[32,3],[],[x]]", "[[[[[[[", "[[32,64]]", "[[2],[x,y]]"])
def test_shapes_that_say_nothing_are_passed_over(shapes):
    odd = operators(*CNN, shapes=[("aten::linear", shapes, 1)])
    assert parameters(side("odd", run(12, odd))) is None
    assert programs_of(odd, shaped(32)).is_same  # by its operators


def test_other_modules_are_counted_by_class():
    cnn = modules("Net_0", "Net_0 / Conv2d_0", "Net_0 / Conv2d_1", "Net_0 / Linear_0")
    lstm = modules("Rnn_0", "Rnn_0 / LSTM_0", "Rnn_0 / Linear_0")
    assert programs_of(cnn, lstm).differences == ("modules: 2 Conv2d only in cnn, 1 LSTM only in other",)
    renamed = modules("Other_0", "Other_0 / Conv2d_5", "Other_0 / Conv2d_1", "Other_0 / Linear_7")
    assert programs_of(cnn, renamed).is_same


@pytest.mark.parametrize("other", [modules("a", source="ranges of the program"), modules("OptimizedModule_0 / LSTM_0")])
def test_ranges_and_compiled_modules_say_nothing_of_modules(other):
    found = programs_of(modules("Net_0 / Conv2d_0"), other)
    assert (found.differences, found.is_same) == ((), False)


# ------------------------------------------------------------------------------------------------------- kernels


def test_kernels_of_convolutions_against_none_are_another_program_in_any_format():
    cnn = kernels(("wgrad", "convolution", 240, 7000), ("k", "elementwise", 240, 3000))
    mlp = kernels(("sgemm", "gemm", 240, 7000), ("j", "elementwise", 240, 3000))
    base, new = (side(name, run(12, part, about={"format": name})) for name, part in (("nsys", cnn), ("kineto", mlp)))
    assert programs(base, new).differences == (
        "convolutions take 70.0 % of kernel time in nsys, and there are none in kineto",
    )


def test_kernels_that_may_be_anything_may_be_convolutions():
    cnn = kernels(("wgrad", "convolution", 240, 7000))
    fused = kernels(("fusion_1", "fusion", 240, 3100), ("sgemm", "gemm", 240, 6900))
    assert programs_of(cnn, fused).differences == ()


@pytest.mark.parametrize(("calls", "is_other"), [(299, False), (300, True)])
def test_a_quarter_more_of_other_kernels_is_another_program(calls, is_other):
    one, other = kernels(("a", "convolution", 240, 900)), kernels(("b", "convolution", calls, 900))
    found = programs_of(one, other).differences
    assert found == (("kernels of matrix products and convolutions per step: 20 in cnn and 25 in other",) * is_other)


def test_nothing_that_both_sides_recorded_is_said_and_forbids_a_verdict_across_formats():
    nothing = section("os_calls")
    nsys, again, xplane = (
        side(name, run(steps, nothing, about={"format": name}))
        for steps, name in ((12, "nsys"), (13, "nsys"), (14, "xplane"))
    )
    for other, forbids in ((again, ""), (xplane, "verdict")):
        (remark,) = (remark for remark in remarks(nsys, other, PLAIN) if remark.code == "unknown-work")
        assert remark.forbids == forbids


def test_runs_of_one_study_are_vouched_for_by_their_tags():
    base, new = (side(name, run(12, tagged(study=name), about={"format": name})) for name in ("nsys", "xplane"))
    assert "unknown-work" not in {remark.code for remark in remarks(base, new, PLAIN)}


@pytest.mark.parametrize(("others", "is_known"), [(("step 9", "load"), True), (("epoch 1", "save"), False)])
def test_ranges_of_the_same_names_show_the_same_program(others, is_known):
    before, after = (
        section("ranges", table("", "name", *[(name,) for name in names]))
        for names in (("step 1", "step 2", "load"), others)
    )
    base, new = (
        side(name, run(steps, part, about={"format": "nsys"}))
        for steps, name, part in ((12, "base", before), (13, "new", after))
    )
    assert ("unknown-work" not in {remark.code for remark in remarks(base, new, PLAIN)}) is is_known
