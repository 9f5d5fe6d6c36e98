"""Run inside of runs, by any Python with nothing installed: what NVIDIA's driver lets them see and hold.

python gpu_probe.py see          the devices that CUDA shows, as JSON
python gpu_probe.py hold BYTES   takes that much memory of the first one, says so, and keeps it
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import uuid

NO_DEVICE = 100


def _cuda() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def _check(code: int) -> None:
    if code:
        sys.exit(f"CUDA error {code}")


def _device(cuda: ctypes.CDLL, index: int) -> ctypes.c_int:
    device = ctypes.c_int()
    _check(cuda.cuDeviceGet(ctypes.byref(device), index))
    return device


def _name(cuda: ctypes.CDLL, index: int) -> str:
    text = ctypes.create_string_buffer(16)
    _check(cuda.cuDeviceGetUuid(text, _device(cuda, index)))
    return f"GPU-{uuid.UUID(bytes=text.raw)}"


def see() -> None:
    cuda, count = _cuda(), ctypes.c_int()
    code = cuda.cuInit(0)
    if code != NO_DEVICE:
        _check(code)
        _check(cuda.cuDeviceGetCount(ctypes.byref(count)))
    names = [_name(cuda, index) for index in range(count.value)]
    print(json.dumps({"variable": os.environ.get("CUDA_VISIBLE_DEVICES"), "devices": names}))


def hold(size: str) -> None:
    cuda, context, memory = _cuda(), ctypes.c_void_p(), ctypes.c_uint64()
    _check(cuda.cuInit(0))
    _check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), _device(cuda, 0)))
    _check(cuda.cuCtxSetCurrent(context))
    _check(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(int(size))))
    print("held", flush=True)
    signal.pause()


if __name__ == "__main__":
    if sys.argv[1] == "see":
        see()
    else:
        hold(sys.argv[2])
