"""GPUs by ctypes: a library with NVML's functions is compiled here; the real one is asked where there is a GPU."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from runyard.runner import nvml

SOURCE = r"""
#include <stdio.h>
#include <string.h>
typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned int gpu, memory; } utilization_t;
static int handles[3] = {0, 1, 2};
static const char *uuids[3] = {"GPU-0000", "GPU-1111", "GPU-2222"};
int nvmlInit_v2(void) { return INIT; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned int *count) { *count = 3; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device) {
    *device = &handles[index];
    return index == 2 ? 15 : 0;  /* the third one has fallen off the bus */
}
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
    for (int i = 0; i < 3; i++)
        if (!strcmp(uuid, uuids[i])) { *device = &handles[i]; return 0; }
    return 6;
}
int nvmlDeviceGetUUID(void *device, char *text, unsigned int length) {
    snprintf(text, length, "%s", uuids[*(int *)device]);
    return 0;
}
int nvmlDeviceGetName(void *device, char *text, unsigned int length) {
    snprintf(text, length, "Model %d", *(int *)device);
    return 0;
}
int nvmlDeviceGetMemoryInfo(void *device, memory_t *memory) {
    memory->total = 80ULL << 30; memory->used = 5ULL << 30; memory->free = 75ULL << 30;
    return 0;
}
int nvmlDeviceGetUtilizationRates(void *device, utilization_t *rates) {
    rates->gpu = 97; rates->memory = 40;
    return *(int *)device == 1 ? 3 : 0;  /* not supported there */
}
"""


def build(directory: Path, init: int = 0) -> str:
    source, library = directory / "nvml.c", directory / f"libnvidia-ml-{init}.so"
    source.write_text(SOURCE)
    subprocess.run(["cc", "-shared", "-fPIC", f"-DINIT={init}", "-o", library, source], check=True)
    return str(library)


def test_gpus_are_listed(tmp_path: Path) -> None:
    assert nvml.gpus(build(tmp_path)) == [
        {"uuid": "GPU-0000", "name": "Model 0", "memory": 80 << 30},
        {"uuid": "GPU-1111", "name": "Model 1", "memory": 80 << 30},
    ]


def test_usage_is_told_as_far_as_it_is_known(tmp_path: Path) -> None:
    library = nvml.open_library(build(tmp_path))
    assert library is not None
    assert library.usage("GPU-0000") == {"uuid": "GPU-0000", "memory": 5 << 30, "utilization": 97}
    assert library.usage("GPU-1111") == {"uuid": "GPU-1111", "memory": 5 << 30, "utilization": None}
    assert library.usage("GPU-none") == {"uuid": "GPU-none", "memory": None, "utilization": None}
    library.close()


def test_without_library_or_driver_there_are_none(tmp_path: Path) -> None:
    assert nvml.gpus("libnvidia-ml-of-nobody.so") == []
    assert nvml.gpus("libc.so.6") == []
    assert nvml.gpus(build(tmp_path, init=9)) == []


@pytest.mark.component("nvidia gpu")
def test_real_gpus() -> None:
    found = nvml.gpus()
    assert found
    library = nvml.open_library()
    assert library is not None
    for gpu in found:
        assert gpu["uuid"].startswith("GPU-")
        usage = library.usage(gpu["uuid"])
        assert 0 <= usage["memory"] <= gpu["memory"]
        assert usage["utilization"] is None or 0 <= usage["utilization"] <= 100
    library.close()
