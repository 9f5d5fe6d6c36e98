"""GPUs by NVIDIA's management library, through ctypes. Without the library or a driver there are simply none."""

import ctypes
from typing import Any, Dict, List, Optional

LIBRARY = "libnvidia-ml.so.1"
_TEXT = 96  # NVML_DEVICE_UUID_V2_BUFFER_SIZE and NVML_DEVICE_NAME_V2_BUFFER_SIZE


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class Nvml:
    """An open library. It holds the driver's device files: a process that forks others should not keep one."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def gpus(self) -> List[Dict[str, Any]]:
        """`[{"uuid", "name", "memory"}]`, memory in bytes; GPUs that do not answer are left out."""
        count = ctypes.c_uint()
        if not self._call("nvmlDeviceGetCount_v2", ctypes.byref(count)):
            return []
        found = [self._describe(index) for index in range(count.value)]
        return [gpu for gpu in found if gpu is not None]

    def usage(self, uuid: str) -> Dict[str, Any]:
        """`{"uuid", "memory", "utilization"}`: bytes used and percent busy, each None if the GPU does not report it."""
        handle = ctypes.c_void_p()
        known = self._call("nvmlDeviceGetHandleByUUID", uuid.encode(), ctypes.byref(handle))
        return {
            "uuid": uuid,
            "memory": self._memory(handle, "used") if known else None,
            "utilization": self._utilization(handle) if known else None,
        }

    def close(self) -> None:
        self._call("nvmlShutdown")

    def _describe(self, index: int) -> Optional[Dict[str, Any]]:
        handle = ctypes.c_void_p()
        if not self._call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle)):
            return None
        uuid = self._text("nvmlDeviceGetUUID", handle)
        if uuid is None:
            return None
        name = self._text("nvmlDeviceGetName", handle) or "GPU"
        return {"uuid": uuid, "name": name, "memory": self._memory(handle, "total")}

    def _text(self, function: str, handle: ctypes.c_void_p) -> Optional[str]:
        buffer = ctypes.create_string_buffer(_TEXT)
        done = self._call(function, handle, buffer, ctypes.c_uint(_TEXT))
        return buffer.value.decode("utf-8", "replace") if done else None

    def _memory(self, handle: ctypes.c_void_p, field: str) -> Optional[int]:
        memory = _Memory()
        done = self._call("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory))
        return int(getattr(memory, field)) if done else None

    def _utilization(self, handle: ctypes.c_void_p) -> Optional[int]:
        rates = _Utilization()
        done = self._call("nvmlDeviceGetUtilizationRates", handle, ctypes.byref(rates))
        return int(rates.gpu) if done else None

    def _call(self, function: str, *arguments: Any) -> bool:
        return bool(getattr(self._library, function)(*arguments) == 0)


def open_library(path: str = LIBRARY) -> Optional[Nvml]:
    """None when there is no library, or no driver behind it."""
    try:
        library = ctypes.CDLL(path)
        return Nvml(library) if library.nvmlInit_v2() == 0 else None
    except (OSError, AttributeError):
        return None


def gpus(path: str = LIBRARY) -> List[Dict[str, Any]]:
    """The GPUs of this machine, found once and let go again."""
    library = open_library(path)
    if library is None:
        return []
    try:
        return library.gpus()
    finally:
        library.close()
