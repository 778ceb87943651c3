"""The client against a real server: the same words, the same answers, clear mistakes."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from lustrum.client import Client, ServerError
from server.conftest import address, root, service  # noqa: F401 - fixtures


@pytest.fixture(scope="module")
def client(address: str) -> Client:  # noqa: F811
    return Client(address)


def test_a_table_comes_with_values_by_code(client: Client) -> None:
    answer = client.table(
        "demo", by=["age:ten-year", "sex"], where={"region": "1"}, totals=True, include=("bounds",)
    )
    assert answer.decision == "answer"
    assert not answer.refused
    assert answer.variables == ("age", "sex")
    cells = list(answer.cells())
    assert len(cells) == 36
    for cell in cells:
        assert answer.value(**cell.codes) == cell.value
        assert cell.high is not None
        assert cell.low <= cell.value <= cell.high


def test_the_frame_has_a_row_for_each_cell(client: Client) -> None:
    answer = client.table("demo", by="sex")
    frame = answer.to_pandas()
    assert list(frame.columns) == ["sex", "sex_label", "value", "status"]
    assert frame["value"].tolist() == [cell.value for cell in answer.cells()]
    assert frame["sex_label"].tolist() == [cell.labels["sex"] for cell in answer.cells()]
    assert answer.to_polars(labels=False).columns == ["sex", "value", "status"]
    assert answer.to_arrow()["value"].to_pylist() == frame["value"].tolist()
    assert answer.to_pandas(wide=True)["value"].tolist() == frame["value"].tolist()
    assert "<td>" in answer._repr_html_()


def test_the_wide_frame_has_the_last_variable_as_columns(client: Client) -> None:
    answer = client.table("demo", by=["age:ten-year", "sex"], totals=True)
    frame = answer.to_pandas(labels=False, wide=True)
    assert frame.index.name == "age"
    assert frame.columns.tolist() == answer.codes("sex")
    for cell in answer.cells():
        assert frame.loc[cell.codes["age"], cell.codes["sex"]] == cell.value


def test_a_refusal_is_an_answer(client: Client) -> None:
    answer = client.table("demo", by=["area", "age"])
    assert answer.refused
    assert answer.reasons[0].way_forward
    assert list(answer.cells()) == []
    for frame in (answer.to_pandas, answer.to_polars, answer.to_arrow):
        with pytest.raises(LookupError, match=answer.reasons[0].text[:20]):
            frame()
    assert "The table was refused" in answer._repr_html_()
    with pytest.raises(LookupError, match="refused"):
        answer.value(area="1", age="1")


def test_a_code_that_is_not_there_is_named(client: Client) -> None:
    answer = client.table("demo", by=["sex"])
    with pytest.raises(LookupError, match="has no code '9'"):
        answer.value(sex="9")
    with pytest.raises(LookupError, match="Name a code for each of: sex"):
        answer.value(age="1")


def test_hints_categories_and_datasets_are_there(client: Client) -> None:
    assert [d["name"] for d in client.datasets()] == ["businesses", "demo"]
    assert [d["name"] for d in client.datasets("census")] == ["demo"]
    assert client.dataset("demo")["unit"]
    assert len(list(client.categories("demo", "age"))) == 21
    hint = client.hint("demo", by=["area", "age"])
    assert not hint.passes
    assert hint.reasons
    assert client.hint("demo", by=["sex"]).passes


def test_what_did_not_change_is_not_sent_again(client: Client) -> None:
    assert client.dataset("demo") is client.dataset("demo")


def test_a_download_is_the_file(client: Client) -> None:
    answer = client.table("demo", by=["sex"])
    assert client.download(answer, "csv").startswith(b"sex")
    with pytest.raises(ServerError, match="no format 'pdf'"):
        client.download(answer, "pdf")


def test_a_mistake_comes_in_the_servers_words(client: Client) -> None:
    with pytest.raises(ServerError, match="did you mean 'sex'") as caught:
        client.table("demo", by=["sexx"])
    assert caught.value.status == 400
    assert caught.value.kind == "urn:lustrum:problem:query"


def test_nobody_there_is_one_sentence() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ServerError, match="does not answer"):
        Client(f"http://127.0.0.1:{port}").dataset("demo")
    with pytest.raises(ServerError, match="begins with http"):
        Client("localhost:8000")


class Busy(BaseHTTPRequestHandler):
    """Is busy twice, then answers something that is no JSON."""

    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        busy = type(self).asked <= 2
        body = json.dumps({"detail": "Later.", "type": "t", "title": "x"}) if busy else "hello"
        self.send_response(429 if busy else 200)
        self.send_header("Retry-After", "0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def busy() -> Iterator[str]:
    Busy.asked = 0
    server = HTTPServer(("127.0.0.1", 0), Busy)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_busy_server_is_asked_again(busy: str) -> None:
    with pytest.raises(ServerError, match="is no Lustrum server"):
        Client(busy).dataset("demo")
    assert Busy.asked == 3


def test_patience_ends(busy: str) -> None:
    with pytest.raises(ServerError, match="Later"):
        Client(busy, patience=1).dataset("demo")
    assert Busy.asked == 2
