"""A progress bar that prints nothing where there is none."""

from __future__ import annotations

from rich.progress import Progress


class Bar(Progress):
    """rich's bar; disabled, it is silent, where rich before 14 ends a line that was never begun."""

    def stop(self) -> None:
        """Stop, if it was ever shown."""
        if not self.disable:
            super().stop()
