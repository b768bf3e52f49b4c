"""What an API call does, by its name."""

import pytest

from traceviz.cuda_names import api_kind


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (
            "launch",
            "cudaLaunchKernel cuLaunchKernel cuLaunchKernelEx cudaLaunchKernelExC cudaGraphLaunch cuGraphLaunch",
        ),
        ("launch", "cudaLaunchCooperativeKernel cudaLaunch hipLaunchKernel hipModuleLaunchKernel cuLaunchKernel_ptsz"),
        ("async_copy", "cudaMemcpyAsync cuMemcpyHtoDAsync_v2 cudaMemcpy2DAsync cudaMemsetAsync cuMemsetD32Async"),
        ("blocking_copy", "cudaMemcpy cuMemcpyHtoD_v2 cudaMemcpy2D cudaMemset cuMemcpyDtoH_v2 cudaMemcpyToSymbol"),
        ("synchronisation", "cudaDeviceSynchronize cuCtxSynchronize cudaStreamSynchronize cuEventSynchronize"),
        ("allocation", "cudaMalloc cudaFree cuMemAlloc_v2 cuMemFree_v2 cudaHostAlloc cuMemCreate"),
        ("allocation", "cudaFreeHost cudaMallocHost cuMemHostAlloc cudaMallocManaged cudaHostRegister cuMemMap"),
        ("pool_allocation", "cudaMallocAsync cudaFreeAsync cuMemAllocAsync cuMemFreeAsync cuMemAllocFromPoolAsync"),
        ("stream", "cudaStreamCreateWithFlags cuStreamCreate cudaStreamDestroy cuStreamDestroy_v2"),
        ("compilation", "cuModuleLoadData cuModuleLoadFatBinary cuLibraryLoadData cudaGraphInstantiate cuLinkComplete"),
        ("other", "cudaEventRecord cudaStreamWaitEvent cudaGetDevice cuKernelGetAttribute cudaStreamIsCapturing"),
        ("other", "cudaLaunchHostFunc cudaGraphAddMemcpyNode cudaMemGetInfo cudaPointerGetAttributes unknown"),
    ],
)
def test_runtime_and_driver_forms_are_told_apart_by_what_they_do(kind, names):
    assert {name: api_kind(name) for name in names.split()} == dict.fromkeys(names.split(), kind)
