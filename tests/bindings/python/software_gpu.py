"""Arrays in the memory of a GPU in software, as packages for GPUs would show them."""
import ctypes
import os

import numpy as np

_lib = ctypes.CDLL(os.path.join(os.environ["TD_SOFTWARE_GPU"], "libtd_cuda.so.0"))
_lib.td_software_allocate.restype, _lib.td_software_allocate.argtypes = ctypes.c_void_p, [ctypes.c_int32, ctypes.c_int64]
_lib.td_software_release.argtypes = [ctypes.c_int32, ctypes.c_void_p]
_lib.td_software_copy.argtypes = [ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]


class _Array:
    """A copy of a NumPy array with its strides, in the memory of GPU `ordinal`."""

    def __init__(self, a, ordinal=0):
        self.shape, self.strides, self.dtype, self.ordinal = a.shape, a.strides, a.dtype, ordinal
        reach = [(n - 1) * s for n, s in zip(a.shape, a.strides)]
        low = sum(r for r in reach if r < 0)
        self.bytes = sum(abs(r) for r in reach) + a.itemsize
        self.block = _lib.td_software_allocate(ordinal, self.bytes)
        self.address = self.block - low
        _lib.td_software_copy(ordinal, self.block, a.ctypes.data + low, self.bytes)

    def host(self):
        raw = np.empty(self.bytes, np.uint8)
        _lib.td_software_copy(self.ordinal, raw.ctypes.data, self.block, self.bytes)
        return np.ndarray(self.shape, self.dtype, raw, self.address - self.block, self.strides)

    def __del__(self):
        _lib.td_software_release(self.ordinal, self.block)


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
