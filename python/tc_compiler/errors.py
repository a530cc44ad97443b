# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tc's compiler and runtime say when something cannot be done."""


class TcError(RuntimeError):
    """An error of tc; its text is the sentence that tc's tools print, and `code` their exit code."""

    code = 6


class InvalidError(TcError):
    """Wrong use, or a file that cannot be read, is corrupt, or of another version (code 1)."""

    code = 1


class UnsupportedError(TcError):
    """The model needs what tc lacks (code 2); the text names the nodes."""

    code = 2


class RefusedError(TcError):
    """An input has a dtype, rank, size or value that the model does not take (code 4)."""

    code = 4


class MachineError(TcError):
    """This machine cannot run it: CPU, GPU, driver, memory (code 5)."""

    code = 5


class InternalError(TcError):
    """A defect in tc (code 6)."""


def error_of(code: int, text: str) -> TcError:
    """The exception for an exit code of the tools, or a status of libtcrt."""
    for kind in (InvalidError, UnsupportedError, RefusedError, MachineError):
        if kind.code == code:
            return kind(text)
    return InternalError(text)
