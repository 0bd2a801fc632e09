"""How processes of MPI meet in td: a td_communicator of an mpi4py communicator."""
from __future__ import annotations

import ctypes
import importlib
import logging
from typing import Any, Callable

from . import _abi
from ._library import Handle, lib

_all_reduce_fn = ctypes.CFUNCTYPE(_abi.i32, _abi.ptr, _abi.i64, _abi.i32, _abi.ptr)
_all_to_all_v_fn = ctypes.CFUNCTYPE(_abi.i32, _abi.ptr, _abi.i64_p, _abi.ptr, _abi.i64_p, _abi.ptr)
_broadcast_fn = ctypes.CFUNCTYPE(_abi.i32, _abi.ptr, _abi.i64, _abi.i32, _abi.ptr)
_abort_fn = ctypes.CFUNCTYPE(None, _abi.i32, _abi.ptr)

_PART = 1 << 30  # MPI counts in int: more than so many bytes go in parts


def _memory(address: int | None, size: int) -> memoryview:
    """Bytes where td has them."""
    kind = ctypes.c_char * size
    return memoryview(kind.from_address(address) if address and size else kind()).cast("B")


def _pieces(size: int) -> range:
    return range(0, size, _PART)


class Communicator:
    """The functions of a duplicate of an mpi4py communicator, which td's messages alone use. It lasts until MPI ends:
    freeing it would be collective, and when objects end differs between processes."""

    def __init__(self, comm: Any) -> None:
        self._mpi: Any = importlib.import_module("mpi4py.MPI")
        if not isinstance(comm, self._mpi.Comm):
            raise TypeError(f"communicator: a {type(comm).__name__}, expected a communicator of mpi4py")
        self._comm = comm.Dup()
        self._functions = (_all_reduce_fn(self._guarded(self._all_reduce)),
                           _all_to_all_v_fn(self._guarded(self._all_to_all_v)),
                           _broadcast_fn(self._guarded(self._broadcast)),
                           _abort_fn(lambda status, user: self._comm.Abort(-status)))
        self.handle = Handle("communicator", lib.td_communicator_create, self._comm.Get_rank(), self._comm.Get_size(),
                             *self._functions, None, None)

    def _guarded(self, function: Callable[..., None]) -> Callable[..., int]:
        def call(*arguments: Any) -> int:
            try:
                function(*arguments[:-1])  # all but user
                return 0
            except BaseException:  # which cannot pass through td
                logging.getLogger("td").exception("a function of the communicator failed")
                return 1
        return call

    def _all_reduce(self, data: int, count: int, operation: int) -> None:
        numbers = _memory(data, 8 * count)
        for at in _pieces(8 * count):
            piece = [numbers[at:at + _PART], self._mpi.DOUBLE]
            self._comm.Allreduce(self._mpi.IN_PLACE, piece, self._mpi.SUM if operation == 0 else self._mpi.MAX)

    def _all_to_all_v(self, sent: int, sent_bytes: Any, received: int, received_bytes: Any) -> None:
        size, rank = self._comm.Get_size(), self._comm.Get_rank()
        out, into = _memory(sent, sum(sent_bytes[:size])), _memory(received, sum(received_bytes[:size]))
        begin, requests = 0, []
        for p in range(size):
            n = received_bytes[p]
            if p == rank:
                own = sum(sent_bytes[:rank])
                into[begin:begin + n] = out[own:own + n]
            else:
                requests += [self._comm.Irecv([into[begin + at:begin + min(at + _PART, n)], self._mpi.BYTE], p)
                             for at in _pieces(n)]
            begin += n
        begin = 0
        for p in range(size):
            n = sent_bytes[p]
            if p != rank:
                requests += [self._comm.Isend([out[begin + at:begin + min(at + _PART, n)], self._mpi.BYTE], p)
                             for at in _pieces(n)]
            begin += n
        self._mpi.Request.Waitall(requests)

    def _broadcast(self, data: int, size: int, root: int) -> None:
        numbers = _memory(data, size)
        for at in _pieces(size):
            self._comm.Bcast([numbers[at:at + _PART], self._mpi.BYTE], root)
