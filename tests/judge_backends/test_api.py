"""The judge behind an endpoint: a server on loopback that answers, fails, hangs, or is not there."""

import json
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from hindsearch.errors import JudgeError, UserError
from hindsearch.interfaces import JudgeRequest
from hindsearch.judge_backends.api import ApiBackend

pytest.importorskip("httpx")


def completion(text):
    return 200, json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]})


class Endpoint:
    """Answers a chat completion as ``answer(prompt, try)`` says; remembers what it was sent."""

    def __init__(self):
        self.answer = lambda prompt, attempt: completion(f"reply to {prompt}")
        self.models = (200, json.dumps({"data": [{"id": "small"}]}))
        self.bodies, self.headers, self.tries, self.in_flight, self.most_in_flight = [], [], {}, 0, 0
        self.lock = threading.Lock()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args):
                pass

            def do_GET(self):
                self.send(*endpoint.models)

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                prompt = body["messages"][0]["content"]
                with endpoint.lock:
                    endpoint.bodies.append((self.path, body))
                    endpoint.headers.append(dict(self.headers))
                    endpoint.tries[prompt] = attempt = endpoint.tries.get(prompt, 0) + 1
                    endpoint.in_flight += 1
                    endpoint.most_in_flight = max(endpoint.most_in_flight, endpoint.in_flight)
                try:
                    self.send(*endpoint.answer(prompt, attempt))
                finally:
                    with endpoint.lock:
                        endpoint.in_flight -= 1

            def send(self, status, text, drip=0.0):
                self.send_response(status)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                try:
                    for piece in text if drip else [text]:
                        self.wfile.write(piece.encode())
                        self.wfile.flush()
                        time.sleep(drip)
                except OSError:
                    pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def endpoint():
    endpoint = Endpoint()
    yield endpoint
    endpoint.close()


def backend(endpoint, **options):
    defaults = {"model": "small", "timeout": 5.0, "retries": 2, "backoff": 0.001, "concurrency": 4}
    return ApiBackend(endpoint.url, **(defaults | options))


def requests(*prompts):
    return [JudgeRequest(prompt, "q", (), None, ()) for prompt in prompts]


def test_replies_are_in_the_order_of_the_requests(endpoint):
    endpoint.answer = lambda prompt, attempt: (time.sleep(0.03 if prompt == "a" else 0), completion(prompt))[1]
    assert backend(endpoint)(requests(*"abcdefgh")) == list("abcdefgh")
    path, body = endpoint.bodies[0]
    assert path == "/v1/chat/completions"
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("small", 0, 256)
    assert [message["role"] for message in body["messages"]] == ["user"]


def test_no_more_requests_are_in_flight_than_allowed(endpoint):
    endpoint.answer = lambda prompt, attempt: (time.sleep(0.01), completion(prompt))[1]
    backend(endpoint, concurrency=2)(requests(*"abcdefgh"))
    assert endpoint.most_in_flight == 2


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "/v1/chat/completions"])
def test_an_address_may_be_given_with_or_without_its_path(endpoint, path):
    endpoint.url += path
    assert backend(endpoint)(requests("a")) == ["reply to a"]


@pytest.mark.parametrize(
    "trouble",
    [
        (500, "oops"),
        (503, "busy"),
        (429, "slow down"),
        (200, '{"choices": [{"mess'),
        (200, "[]"),
        (200, '{"choices": []}'),
    ],
    ids=["500", "503", "429", "half", "list", "empty"],
)
def test_what_may_pass_is_tried_again(endpoint, trouble):
    endpoint.answer = lambda prompt, attempt: trouble if attempt < 3 else completion("at last")
    assert backend(endpoint)(requests("a")) == ["at last"]
    assert endpoint.tries == {"a": 3}


def test_what_does_not_pass_is_an_error_in_its_place_after_bounded_tries(endpoint):
    endpoint.answer = lambda prompt, attempt: (500, "oops") if prompt == "b" else completion("fine")
    replies = backend(endpoint)(requests(*"abc"))
    assert [replies[0], replies[2]] == ["fine", "fine"]
    assert isinstance(replies[1], JudgeError)
    assert endpoint.url in str(replies[1])
    assert "3 times" in str(replies[1])
    assert "status 500" in str(replies[1])
    assert endpoint.tries["b"] == 3


def test_a_refusal_by_status_is_not_tried_again(endpoint):
    endpoint.answer = lambda prompt, attempt: (400, "prompt too long")
    (reply,) = backend(endpoint)(requests("a"))
    assert isinstance(reply, JudgeError)
    assert "prompt too long" in str(reply)
    assert endpoint.tries == {"a": 1}


def test_a_hanging_judge_ends_in_an_error(endpoint):
    endpoint.answer = lambda prompt, attempt: (time.sleep(0.6), completion("late"))[1]
    began = time.monotonic()
    (reply,) = backend(endpoint, timeout=0.1, retries=1)(requests("a"))
    assert isinstance(reply, JudgeError)
    assert time.monotonic() - began < 2


def test_a_dripping_judge_ends_in_an_error(endpoint):
    endpoint.answer = lambda prompt, attempt: (*completion("slow"), 0.03)
    (reply,) = backend(endpoint, timeout=0.15, retries=0)(requests("a"))
    assert "no whole reply in 0.15 s" in str(reply)


def test_a_dead_judge_does_not_cost_every_request_its_retries(endpoint):
    endpoint.answer = lambda prompt, attempt: (500, "oops")
    replies = backend(endpoint, concurrency=2, retries=1)(requests(*(str(i) for i in range(40))))
    assert all(isinstance(reply, JudgeError) for reply in replies)
    assert sum(endpoint.tries.values()) <= 2 * 4


def test_an_empty_content_is_an_empty_reply(endpoint):
    endpoint.answer = lambda prompt, attempt: completion(None)
    assert backend(endpoint)(requests("a")) == [""]


def test_a_refused_connection_is_said_at_the_start_with_the_address():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(UserError, match=f"{url} cannot be reached"):
        ApiBackend(url, "small", retries=1, backoff=0.001)


def test_a_model_that_is_not_served_is_said_at_the_start(endpoint):
    with pytest.raises(UserError, match=r"does not serve judge_backend.model=large; it serves small"):
        backend(endpoint, model="large")


def test_an_endpoint_that_lists_no_models_is_fine(endpoint):
    endpoint.models = (404, "not found")
    assert backend(endpoint)(requests("a")) == ["reply to a"]


def test_a_refused_key_is_said_at_the_start(endpoint):
    endpoint.models = (401, "no")
    with pytest.raises(UserError, match=r"refuses access \(status 401\)"):
        backend(endpoint)


def test_the_key_is_sent_and_shown_nowhere(endpoint, monkeypatch):
    monkeypatch.setenv("SOME_KEY", "secret-1")
    judge = backend(endpoint, api_key_env="SOME_KEY", retries=0)
    endpoint.answer = lambda prompt, attempt: (500, "oops")
    (reply,) = judge(requests("a"))
    assert endpoint.headers[0]["Authorization"] == "Bearer secret-1"
    assert "secret-1" not in f"{judge!r} {reply!r} {vars(judge)}"


def test_a_key_variable_that_is_not_set_is_said(endpoint, monkeypatch):
    monkeypatch.delenv("SOME_KEY", raising=False)
    with pytest.raises(UserError, match="SOME_KEY is not set"):
        backend(endpoint, api_key_env="SOME_KEY")


def test_without_httpx_the_extra_is_named(endpoint, monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(UserError, match=r"hindsearch\[api\]"):
        backend(endpoint)


@pytest.mark.parametrize("option", [{"timeout": 0}, {"retries": -1}, {"concurrency": 0}, {"max_tokens": 0}])
def test_bad_options_are_refused(endpoint, option):
    with pytest.raises(ValueError, match=next(iter(option))):
        backend(endpoint, **option)


def test_an_address_without_a_scheme_is_refused():
    with pytest.raises(ValueError, match="no address"):
        ApiBackend("localhost:8000", "small")
