"""The action of an API call, by its name."""

import subprocess
import sys

import pytest

from traceviz.trace.names.cuda_names import api_kind


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
        ("compilation", "cudaStreamBeginCapture cuStreamBeginCapture_v2 cuStreamEndCapture hipStreamBeginCapture"),
        ("compilation", "cudaStreamBeginCaptureToGraph hipStreamEndCapture cuStreamBeginCapture_v2_ptsz"),
        ("other", "cudaStreamGetCaptureInfo_v2 cudaThreadExchangeStreamCaptureMode hipStreamGetCaptureInfo"),
        ("launch", "hipExtModuleLaunchKernel hipExtLaunchKernel hipHccModuleLaunchKernel hipGraphLaunch"),
        ("blocking_copy", "hipMemcpyWithStream hipMemcpy hipMemcpyDtoH hipMemcpyHtoD hipMemset"),
        ("async_copy", "hipMemcpyAsync hipMemcpyHtoDAsync hipMemsetAsync hipMemcpy2DAsync"),
        ("synchronisation", "hipDeviceSynchronize hipStreamSynchronize hipEventSynchronize"),
        ("allocation", "hipMalloc hipFree hipHostMalloc hipHostFree hipExtMallocWithFlags hipMemCreate"),
        ("pool_allocation", "hipMallocAsync hipFreeAsync hipMallocFromPoolAsync"),
        ("stream", "hipStreamCreateWithFlags hipExtStreamCreateWithCUMask hipStreamDestroy"),
        ("compilation", "hipModuleLoadData hiprtcCompileProgram hipGraphInstantiate hipLibraryLoadData"),
        ("launch", "cudaLaunch cudaLaunchKernel_ptsz cuLaunchGridAsync"),
        ("synchronisation", "synchronize synchronizeStream"),  # Meta's MTIA
        # Intel
        ("launch", "urEnqueueKernelLaunch piEnqueueKernelLaunch zeCommandListAppendLaunchKernel"),
        ("async_copy", "urEnqueueUSMMemcpy piextUSMEnqueueMemcpy zeCommandListAppendMemoryCopy urEnqueueUSMFill"),
        ("synchronisation", "urQueueFinish urEventWait piEventsWait zeEventHostSynchronize zeCommandQueueSynchronize"),
        ("allocation", "urUSMDeviceAlloc piextUSMFree zeMemAllocDevice zeMemFree"),
        ("stream", "urQueueCreate zeCommandListCreateImmediate zeCommandQueueCreate"),
        ("compilation", "urProgramBuild piProgramBuild zeModuleCreate"),
        (
            "other",
            "urEnqueueEventsWait urEventGetInfo urKernelSetArgPointer zeKernelSetGroupSize zeMemGetAllocProperties",
        ),
        ("other", "hipGetDevicePropertiesR0600 hipEventRecord hipStreamWaitEvent __hipPushCallConfiguration"),
        ("other", "cudaConfigureCall cudaSetupArgument hipLaunchHostFunc INVALID"),
        ("other", "cudaEventRecord cudaStreamWaitEvent cudaGetDevice cuKernelGetAttribute cudaStreamIsCapturing"),
        ("other", "cudaLaunchHostFunc cudaGraphAddMemcpyNode cudaMemGetInfo cudaPointerGetAttributes unknown"),
    ],
)
def test_runtime_and_driver_forms_are_told_apart_by_what_they_do(kind, names):
    assert {name: api_kind(name) for name in names.split()} == dict.fromkeys(names.split(), kind)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("launch", "runFunction - job_prep_and_submit_for_execution"),
        ("async_copy", "enqueueCommand memcpyHtoDAsync"),
        ("other", "enqueueCommand waitOnEvent"),
        ("other", "predictor_executor::run gif_thread_id:1457"),
    ],
)
def test_calls_of_mtia_have_names_of_several_words(kind, name):
    assert api_kind(name) == kind


def test_importing_the_analyses_compiles_no_patterns_of_names():
    program = (
        "import traceviz.analyses.run; from traceviz.trace.names import cuda_names, kernel_names;"
        "print(cuda_names._patterns.cache_info().currsize, kernel_names.catalogue.cache_info().currsize)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout == b"0 0\n"
