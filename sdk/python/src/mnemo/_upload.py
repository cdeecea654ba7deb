"""Files of imports."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import BinaryIO, Union

FileSource = Union[str, "os.PathLike[str]", bytes, BinaryIO]


class Upload:
    """A file that can be sent several times, if it can be rewound."""

    def __init__(self, source: FileSource) -> None:
        self._owned = isinstance(source, (bytes, str, os.PathLike))
        self._file: BinaryIO
        if isinstance(source, bytes):
            self._file = io.BytesIO(source)
        elif isinstance(source, (str, os.PathLike)):
            self._file = open(source, "rb")
        else:
            self._file = source
        self._name = Path(str(getattr(self._file, "name", "export"))).name
        self.repeatable = self._file.seekable()
        self._start = self._file.tell() if self.repeatable else 0

    def next_attempt(self) -> tuple[str, BinaryIO]:
        """Returns the name and the content from its start."""
        if self.repeatable:
            self._file.seek(self._start)
        return self._name, self._file

    def close(self) -> None:
        """Closes the file if this class opened it."""
        if self._owned:
            self._file.close()
