"""Ray and its actors, made ready beside what else there is to do before clients are asked.

A local Ray takes seconds to start, and an actor another to load what it runs; most of that is
waiting. So a thread does it, and nobody waits but who needs the actors. Its end is waited for: some
Rays end the process if a reference is dropped in another thread meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from fedhh.simulation.executor import Executor, Worker

if TYPE_CHECKING:
    from fedhh.simulation.ray_actors import RayActors


class ActorsAhead:
    """Actors that start now, in a thread, and are used once there is a worker for them.

    The thread lives as long as its Ray: on Linux, Ray's processes end with the thread that started
    them. It is to be closed, which waits until Ray has ended.
    """

    def __init__(
        self, num_workers: int | None, address: str, *, rehearsal: Callable[[], None]
    ) -> None:
        """Start; the arguments are those of `RayActors`."""
        self._arguments = (num_workers, address)
        self._rehearsal = rehearsal
        self._started = threading.Event()
        self._released = threading.Event()
        self._actors: RayActors | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._live, name="ray", daemon=True)
        self._thread.start()

    def actors(self) -> RayActors:
        """Return the actors, once they are placed.

        Raises:
            InputError: The cluster cannot be joined, see `ray_connection.start_ray`.
        """
        self._started.wait()
        if self._error is not None:
            raise self._error
        assert self._actors is not None
        return self._actors

    def executor(self, worker: Worker) -> Executor:
        """Return the way to copies of a worker in these actors, which serve no other.

        Raises:
            InputError: As in `actors`.
        """
        from fedhh.simulation.ray_executor import RayExecutor

        return RayExecutor(worker, ahead=self)

    def close(self) -> None:
        """Let the actors and their Ray end, and wait until they have."""
        self._released.set()
        self._thread.join()

    def _live(self) -> None:
        try:
            # Importing it imports Ray, which takes a while, too.
            from fedhh.simulation.ray_actors import RayActors

            self._actors = RayActors(*self._arguments, rehearsal=self._rehearsal)
        except BaseException as error:
            self._error = error
            return
        finally:
            self._started.set()
        self._released.wait()
        self._actors.close()
