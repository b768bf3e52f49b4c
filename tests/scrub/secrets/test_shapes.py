"""Kinds of private texts: texts that are removed, and similar names that stay."""

import pyarrow.compute as pc
import pytest

from traceviz.api import open_trace
from traceviz.scrub.secrets.redactor import Redactor
from traceviz.scrub.secrets.secrets import secrets_of_text


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("ipv4:10.61.2.3:443", "ipv4:[removed]:443"),
        ("store_10.61.2.3_29500", "store_[removed]_29500"),
        ("v10.61.2.3 build 203.0.113.9", "v[removed] build [removed]"),
        ("x::2001:db8::cafe:3", "x::[removed]"),
        ("mac:02:42:ac:11:00:0d", "mac:[removed]"),
        ("from_eve@corp-b.org_x", "[removed]_x"),
        ("save_/home/eve/ck", "save_[path]/ck"),
        ("2/home/eve/ck", "2[path]/ck"),
        ("%2Fhome%2Feve%2Fck", "[path]/ck"),
        ("~eve/ck", "[path]/ck"),
        ("C:/Users/eve/ck", "[path]/ck"),
        (r"\\filesrv\share\x", "[path]/x"),
        ("s3://bucket/run/ck.pt", "s3://[path]/ck.pt"),
        ("/data/users/eve", "[path]"),
        ("-I/home/eve/include", "-I[path]/include"),
        ("wss://gpu-node-17.corp.org/x", "wss://[removed]/x"),
        ("user=eveline", "user=[removed]"),
        ("--password hunter2x --epochs 3", "--password [removed] --epochs 3"),
        ("Password = 'hunter2 x'", "Password = '[removed]'"),
        ("secret: hunter2z", "secret: [removed]"),
        ("Authorization: Basic ZXZlOmh1bnRlcg==", "Authorization: Basic [removed]"),
        ("use Basic ZXZlOmh1bnRlcg== now", "use Basic [removed] now"),
        ("Cookie: session=abc; theme=dark", "Cookie: [removed]"),
        ("tok" + "ghp_" + "R" * 36, "tok[removed]"),
        ("call +1-415-555-0199 now", "call [removed] now"),
        ("on GPU-12345678-1234-1234-1234-1234567890ab", "on [removed]"),
    ],
)
def test_private_texts_go_and_what_is_around_them_stays(text, clean):
    assert Redactor().clean(text.encode()).decode() == clean
    assert Redactor().clean(clean.encode()).decode() == clean


@pytest.mark.parametrize(
    "text",
    [
        *("cudnn 8.9.7.29", "v23.08.0.1", "cuda10.2.0.89", "libcurand.so.10.2.0.89", "at::native::fd12::abc"),
        *("disk-learn-something-long", "task-7f9c4b8d6f", "half_hf_conv", "weighs_normalized_x", "conv_r8_block"),
        *("threading.local", "torch._C._internal", "encoder.net.io", "node 3", "instance-1", "node_17"),
        *("https://github.com/pytorch/pytorch", "http://localhost:6006", "jit(f)/jit(main)/dot", "a+1 200 300"),
        *("cookie_cutter", "basic block", "Basic training", "token=embedding", "password: none", "user=test"),
        *("~Tensor()", "lr=1e-3 warmup=0.1", "2026-11-21-06-18-50", "block2/net/conv/MatMul", "secret: hidden_layer_2"),
    ],
)
def test_names_that_look_alike_stay(text):
    assert Redactor().clean(text.encode()).decode() == text
    assert list(secrets_of_text(text.encode())) == []


def test_names_of_kernels_calls_and_operations_of_the_samples_stay(samples):
    names = set()
    for sample in (
        "synthetic/torch_input_bound_workers.pt.trace.json.gz",
        "nsys/nvtx_loop.sqlite",
        "xplane/jax_annotated.xplane.pb.gz",
    ):
        tables = open_trace(samples / sample)
        for table in ("kernels", "cuda_api", "os_calls", "host_ops"):
            if table in tables:
                names |= {
                    name for name in pc.unique(tables.arrow(table)["name"]).to_pylist() if name and "/home/" not in name
                }
    assert len(names) > 100
    assert [name for name in names if Redactor().clean(name.encode()).decode() != name] == []
