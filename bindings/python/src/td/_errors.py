"""Exceptions by status."""
from __future__ import annotations

from . import _abi


class TdError(Exception):
    """What libtd refused or failed at, in a sentence that names what came and what was expected.

    Attributes
    ----------
    status : int
        The status of ``td.h``, as in -2.
    name : str
        Its name, as in ``"TD_ERR_SHAPE"``.
    """

    def __init__(self, text: str, status: int = _abi.TD_ERR_INTERNAL, name: str = "TD_ERR_INTERNAL") -> None:
        super().__init__(text)
        self.text, self.status, self.name = text, status, name

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[type[TdError], tuple[str, int, str]]:
        return type(self), (self.text, self.status, self.name)


class ArgumentError(TdError, ValueError):
    """An argument has no meaning: NaN, a number out of its range, an unknown device."""


class ShapeError(TdError, ValueError):
    """Sizes that do not fit: dims, order, rank."""


class CoordinateError(TdError, IndexError):
    """A coordinate outside the tensor, or a repeated one where that is refused."""


class NumberTypeError(TdError, TypeError):
    """Types that do not fit together."""


class HandleError(TdError, RuntimeError):
    """A handle that is not what it should be."""


class OptionUnknownError(TdError, TypeError):
    """No option of that name; the text suggests the nearest."""


class OptionRangeError(TdError, ValueError):
    """An option's value has the wrong type or is out of its range."""


class UnsupportedError(TdError, NotImplementedError):
    """A sound request that this build or device cannot serve."""


class BackendUnavailableError(TdError, RuntimeError):
    """The device asked for is not there: no library, no driver, no device."""


class HostMemoryError(TdError, MemoryError):
    """Out of host memory; the text says how many bytes for what."""


class DeviceMemoryError(TdError, MemoryError):
    """Out of device memory."""


class DeviceError(TdError, RuntimeError):
    """A device failed while working."""


class NumericalError(TdError, ArithmeticError):
    """A computation overflowed or failed to converge."""


class FileError(TdError, OSError):
    """A file could not be read or written, or is not what it should be."""


class CommunicationError(TdError, ConnectionError):
    """A function of the communicator failed, by which processes meet."""


class InternalError(TdError, RuntimeError):
    """A defect in td: please report it with the text."""


_CLASSES: dict[int, type[TdError]] = {
    _abi.TD_ERR_ARGUMENT: ArgumentError,
    _abi.TD_ERR_SHAPE: ShapeError,
    _abi.TD_ERR_INDEX: CoordinateError,
    _abi.TD_ERR_TYPE: NumberTypeError,
    _abi.TD_ERR_HANDLE: HandleError,
    _abi.TD_ERR_OPTION_UNKNOWN: OptionUnknownError,
    _abi.TD_ERR_OPTION_RANGE: OptionRangeError,
    _abi.TD_ERR_UNSUPPORTED: UnsupportedError,
    _abi.TD_ERR_BACKEND_UNAVAILABLE: BackendUnavailableError,
    _abi.TD_ERR_HOST_MEMORY: HostMemoryError,
    _abi.TD_ERR_DEVICE_MEMORY: DeviceMemoryError,
    _abi.TD_ERR_DEVICE: DeviceError,
    _abi.TD_ERR_NUMERICAL: NumericalError,
    _abi.TD_ERR_IO: FileError,
    _abi.TD_ERR_COMMUNICATION: CommunicationError,
    _abi.TD_ERR_INTERNAL: InternalError,
}


for _class in (TdError, *_CLASSES.values()):
    _class.__module__ = "td"  # as tracebacks are to name them


def error_class(status: int) -> type[TdError]:
    """The exception of a status; of one that is newer than this package, TdError."""
    return _CLASSES.get(status, TdError)
