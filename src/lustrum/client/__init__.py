"""A client of a Lustrum server, for programs: nothing but the standard library is needed.

With a server on this machine::

    client = Client("http://127.0.0.1:8000")
    answer = client.table("demo", by=["age:ten-year", "sex"], totals=True)
    answer.value(age="1", sex="2")
"""

from lustrum.client.client import Client, ServerError
from lustrum.client.shapes import Answer, Cell, Hint, RefusalReason

__all__ = ["Answer", "Cell", "Client", "Hint", "RefusalReason", "ServerError"]
