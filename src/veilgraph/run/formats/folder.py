"""The run folder itself, as it may be published."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from veilgraph.errors import VerificationError
from veilgraph.layout import PUBLISHED
from veilgraph.run.formats.base import Format
from veilgraph.run.verify import verify

if TYPE_CHECKING:
    from veilgraph.run.run import Run


class Folder(Format):
    """The run itself, only files that may be published; nothing that was measured on confidential statements is among them."""

    name = "run"

    def write(self, run: Run, folder: Path) -> None:
        run.require_finished()
        found = verify(run)
        if not found["valid"]:
            raise VerificationError(f"{run.folder} is not to be published: {'; '.join(found['reasons'])}")
        for name in PUBLISHED:
            if (run.folder / name).exists():
                shutil.copyfile(run.folder / name, folder / name)
