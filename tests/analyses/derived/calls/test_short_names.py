"""Names of Python frames, kernels and operators within a sentence."""

from traceviz.analyses.derived.calls.short_names import function_of, shortened


def test_names_within_a_sentence_are_short():
    assert shortened("/a/lib/models/video.py(129): preprocess") == "preprocess (video.py)"
    assert shortened("$api.py:3165 try_to_block") == "try_to_block (api.py)"
    assert shortened("at::native::f<int>(a::B)") == "at::native::f<int>(a::B)"
    assert len(shortened("n" * 60)) == 48
    assert function_of("void (anonymous namespace)::f<int, (int)2>(int, T2)") == "f"
    assert function_of("jacobi_kernel(float*, int)") == "jacobi_kernel"


def test_files_that_inductor_generated_are_named_as_such():
    file = "/tmp/torchinductor_me/ov/cov463qhi2m2kw6ldmzzijfv5t3cjjklfci3qly3nsw6upcskct3.py"
    assert shortened(f"{file}(2533): call") == "call (code from Inductor)"
    assert shortened(f"{file}:2533 call", line=True) == "call (code from Inductor:2533)"
    assert shortened("models/cov463.py(3): call") == "call (cov463.py)"
