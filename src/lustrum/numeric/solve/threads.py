"""One thread for dense linear algebra: quicker where a machine is shared, and the same to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits


@contextmanager
def one_thread() -> Iterator[None]:
    """Code that runs inside factors its matrices in one thread.

    On matrices of a thousand rows several threads gain little, and wait for each other for long where
    somebody else uses a processor. Sums taken in another order would also differ in the last digits.
    """
    with threadpool_limits(limits=1, user_api="blas"):
        yield
