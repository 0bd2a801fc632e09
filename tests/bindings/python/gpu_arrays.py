"""Arrays in the memory of a GPU, or of one in software if TD_SOFTWARE_GPU says where, as packages for GPUs would show
them."""
import ctypes
import ctypes.util
import os

import numpy as np

class _Software:
    def __init__(self, folder):
        lib = ctypes.CDLL(os.path.join(folder, "libtd_cuda.so.0"))
        self.allocate, self.release, self.copy = lib.td_software_allocate, lib.td_software_release, lib.td_software_copy
        self.allocate.restype, self.allocate.argtypes = ctypes.c_void_p, [ctypes.c_int32, ctypes.c_int64]
        self.release.argtypes = [ctypes.c_int32, ctypes.c_void_p]
        self.copy.argtypes = [ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]


class _Cuda:
    """CUDA's runtime."""

    def __init__(self):
        self.lib = ctypes.CDLL(os.environ.get("TD_CUDART") or ctypes.util.find_library("cudart"))
        self.lib.cudaFree.argtypes = [ctypes.c_void_p]
        self.lib.cudaMalloc.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t]
        self.lib.cudaMemcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

    def allocate(self, ordinal, size):
        address = ctypes.c_void_p()
        assert self.lib.cudaSetDevice(ordinal) == 0 and self.lib.cudaMalloc(ctypes.byref(address), size) == 0
        return address.value

    def release(self, ordinal, address):
        self.lib.cudaFree(address)

    def copy(self, ordinal, to, origin, size):
        assert self.lib.cudaMemcpy(to, origin, size, 4) == 0  # the addresses say which way


_gpu = _Software(os.environ["TD_SOFTWARE_GPU"]) if os.environ.get("TD_SOFTWARE_GPU") else _Cuda()


class _Array:
    """A copy of a NumPy array with its strides, in the memory of GPU `ordinal`."""

    def __init__(self, a, ordinal=0):
        self.shape, self.strides, self.dtype, self.ordinal = a.shape, a.strides, a.dtype, ordinal
        reach = [(n - 1) * s for n, s in zip(a.shape, a.strides)]
        low = sum(r for r in reach if r < 0)
        self.bytes = sum(abs(r) for r in reach) + a.itemsize
        self.block = _gpu.allocate(ordinal, self.bytes)
        self.address = self.block - low
        _gpu.copy(ordinal, self.block, a.ctypes.data + low, self.bytes)

    def host(self):
        raw = np.empty(self.bytes, np.uint8)
        _gpu.copy(self.ordinal, raw.ctypes.data, self.block, self.bytes)
        return np.ndarray(self.shape, self.dtype, raw, self.address - self.block, self.strides)

    def __del__(self):
        _gpu.release(self.ordinal, self.block)


class _WithInterface:
    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "strides": self.strides, "typestr": self.dtype.str, "data": (self.address, False),
                "version": 3, "stream": 1}


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _WithDLPack:
    def __dlpack_device__(self):
        return 2, self.ordinal

    def __dlpack__(self, stream=None):
        assert stream == -1
        sizes = ctypes.c_int64 * len(self.shape)
        self.lent = _Tensor(self.address - 8, 2, self.ordinal, len(self.shape), {"i": 0, "f": 2}[self.dtype.kind],
                            8 * self.dtype.itemsize, 1, sizes(*self.shape),
                            sizes(*(s // self.dtype.itemsize for s in self.strides)), 8, None, None)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.lent), b"dltensor", None)


class Interface(_WithInterface, _Array):
    """As Numba's arrays."""


class DLPack(_WithDLPack, _Array):
    """As JAX's arrays."""


class Both(_WithDLPack, _WithInterface, _Array):
    """As CuPy's and PyTorch's arrays."""


class Torch(Both):
    """With those methods of PyTorch that td calls."""

    def new_empty(self, shape):
        return Torch(np.full(shape, np.nan, self.dtype), self.ordinal)

    def contiguous(self):
        return Torch(np.ascontiguousarray(self.host()), self.ordinal)

    @property
    def T(self):
        turned = object.__new__(_Turned)
        turned.__dict__.update(base=self, shape=self.shape[::-1], strides=self.strides[::-1], dtype=self.dtype,
                               ordinal=self.ordinal, address=self.address, block=self.block, bytes=self.bytes)
        return turned


class _Turned(Torch):
    """A view, which does not own its memory."""

    def __del__(self):
        pass
