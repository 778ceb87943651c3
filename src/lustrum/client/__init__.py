"""A client of a Lustrum server, for programs: nothing but the standard library is needed.

>>> from lustrum.client import Client
>>> client = Client("http://127.0.0.1:8000")                    # doctest: +SKIP
>>> answer = client.table("demo", by=["age:ten-year", "sex"], totals=True)    # doctest: +SKIP
>>> answer.value(age="1", sex="2")                               # doctest: +SKIP
48_231
"""

from lustrum.client.client import Client, ServerError
from lustrum.client.shapes import Answer, Cell, Hint, RefusalReason

__all__ = ["Answer", "Cell", "Client", "Hint", "RefusalReason", "ServerError"]
