"""Decomposition of sparse and dense tensors with CP-ALS, through libtd.

>>> x = np.random.default_rng(1).random((30, 20, 10))
>>> model = td.cpals(x, 3, tol=1e-6, max_iters=100, seed=1)
>>> model.weights.shape, model.factors[0].shape
((3,), (30, 3))

Modes and indices count from 0. `cpals`, `mttkrp` and `plan` take arrays of NumPy, SciPy and others where they are; `tensor`,
`sparse_tensor` and `read` make a `Tensor` that several calls share; a `KTensor` is a model. Every option of libtd is a
keyword: `options` lists them.
"""
from __future__ import annotations

import os
from typing import Any

from ._context import Context
from ._cpals import cpals
from ._distributed import DistributedKTensor, write_distributed
from ._errors import (ArgumentError, BackendUnavailableError, CommunicationError, CoordinateError, DeviceError,
                      DeviceMemoryError, FileError, HandleError, HostMemoryError, InternalError, NumberTypeError,
                      NumericalError, OptionRangeError, OptionUnknownError, ShapeError, TdError, UnsupportedError)
from ._ktensor import Fit, KTensor, Score, as_ktensor, read_ktensor, write_ktensor
from ._library import has_feature, library_path, library_version
from ._mttkrp import mttkrp
from ._options import Option, options
from ._plan import Plan, PlanMode, plan
from ._report import Report, report
from ._tensor import Tensor, read, sparse_tensor, tensor, write_tensor

__all__ = [
    "ArgumentError", "BackendUnavailableError", "CommunicationError", "Context", "CoordinateError", "DeviceError",
    "DeviceMemoryError", "DistributedKTensor", "FileError", "Fit", "HandleError", "HostMemoryError", "InternalError", "KTensor",
    "NumberTypeError", "NumericalError", "Option", "OptionRangeError", "OptionUnknownError", "Plan", "PlanMode", "Report", "Score", "ShapeError", "TdError",
    "Tensor", "UnsupportedError", "as_ktensor", "cpals", "has_feature", "library_path", "library_version", "mttkrp",
    "options", "plan", "read", "read_ktensor", "report", "sparse_tensor", "tensor", "write",
]
__version__ = library_version()


def write(path: str | os.PathLike[str], x: Any, **options: Any) -> None:
    """Writes a tensor, array or model; the name's ending says the format.

    Parameters
    ----------
    path : str or path
        Tensors: ``.tns`` FROSTT text, ``.txt`` Tensor Toolbox text, ``.tdb`` td's binary format, ``.npy``; ``.gz`` after a
        text's. Models: ``.tdb``, else Tensor Toolbox text. The file appears under its name when it is whole.
    x : Tensor, KTensor, DistributedKTensor, array or what `tensor` takes
        What to write. A model in blocks all processes write together.
    **options
        Options of scope "write", see `options`: ``file_format``.
    """
    if isinstance(x, KTensor):
        write_ktensor(path, x, options)
    elif isinstance(x, DistributedKTensor):
        write_distributed(path, x, options)
    else:
        write_tensor(path, x, options)
