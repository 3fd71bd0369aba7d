"""A judge behind an OpenAI-compatible endpoint: vLLM, ``transformers serve``, llama.cpp, or a paid service."""

import json
import os
import random
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from hindsearch.errors import JudgeError, UserError
from hindsearch.interfaces import JudgeRequest
from hindsearch.seeding import seed_of
from hindsearch.transcripts import request_hash


class _TransientError(Exception):
    """What may pass: worth another try."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


@dataclass(frozen=True)
class ApiBackend:
    """Posts each request to ``<url>/v1/chat/completions``, ``concurrency`` at a time.

    Time-outs, lost connections, replies cut short, status 429 and 5xx are tried again, ``retries`` times, after a wait
    that doubles from ``backoff`` seconds and is jittered; other statuses are not. What still fails is a ``JudgeError``
    in the place of its reply. When ``concurrency`` requests in a row have failed, the rest of the call is not tried.
    ``timeout`` is seconds for one whole reply. Above ``temperature`` 0 each request carries a seed of its own. The key
    is read from the environment variable ``api_key_env``, when one is named; it is neither kept nor logged.

    Raises:
        UserError: at construction: the endpoint cannot be reached, refuses the key or does not serve ``model``; the key
            variable is unset; httpx is not installed.
    """

    url: str
    model: str
    api_key_env: str = ""
    timeout: float = 60.0
    retries: int = 4
    concurrency: int = 16
    max_tokens: int = 256
    backoff: float = 0.5
    temperature: float = 0.0

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ValueError(f"url={self.url!r} is no address; give for example http://127.0.0.1:8000/v1")
        leasts = {"timeout": 0.001, "retries": 0, "concurrency": 1, "max_tokens": 1, "backoff": 0, "temperature": 0}
        for name, least in leasts.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name}={getattr(self, name)} does not work; use {least} or more")
        self._check_health()

    @property
    def _base(self) -> str:
        base = self.url.rstrip("/").removesuffix("/chat/completions").rstrip("/")
        return base if base.endswith("/v1") else base + "/v1"

    def _client(self) -> Any:
        try:
            import httpx
        except ImportError as error:
            raise UserError("judge_backend=api needs httpx; pip install 'hindsearch[api]'") from error
        headers = {}
        if self.api_key_env:
            key = os.environ.get(self.api_key_env, "")
            if not key:
                raise UserError(f"judge_backend.api_key_env={self.api_key_env} is not set; export it with your key")
            headers["Authorization"] = f"Bearer {key}"
        limits = httpx.Limits(max_connections=self.concurrency)
        return httpx.Client(headers=headers, timeout=self.timeout, limits=limits)

    def _check_health(self) -> None:
        failure: Exception | None = None
        with self._client() as client:
            for attempt in range(self.retries + 1):
                try:
                    status, text = self._exchange(client, "GET", f"{self._base}/models", None)
                    break
                except _TransientError as error:
                    failure = error
                    self._wait(attempt, error, last=attempt == self.retries)
            else:
                raise UserError(
                    f"the judge at {self.url} cannot be reached ({failure}); start it, or correct judge_backend.url"
                ) from failure
        if status in (401, 403):
            hint = f"the key in {self.api_key_env}" if self.api_key_env else "judge_backend.api_key_env"
            raise UserError(f"the judge at {self.url} refuses access (status {status}); check {hint}")
        served = _served_models(text) if status == 200 else []
        if served and self.model not in served:
            shown = ", ".join(sorted(served)[:5])
            raise UserError(
                f"the judge at {self.url} does not serve judge_backend.model={self.model}; it serves {shown}"
            )

    def __call__(self, requests: Sequence[JudgeRequest]) -> list[str | Exception]:
        failed_in_a_row, lock = 0, threading.Lock()

        def reply(request: JudgeRequest) -> str | Exception:
            nonlocal failed_in_a_row
            if failed_in_a_row >= self.concurrency:
                return JudgeError(f"the judge at {self.url} is down: {failed_in_a_row} requests in a row failed")
            answer = self._reply(client, request)
            with lock:
                failed_in_a_row = failed_in_a_row + 1 if isinstance(answer, Exception) else 0
            return answer

        with self._client() as client, ThreadPoolExecutor(self.concurrency) as pool:
            return list(pool.map(reply, requests))

    def _reply(self, client: Any, request: JudgeRequest) -> str | Exception:
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": request.prompt}],
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
        }
        if self.temperature:
            body["seed"] = seed_of("judge", request_hash(request)) % 2**31  # some servers take 32 bits
        reason: Exception | str = ""
        for attempt in range(self.retries + 1):
            try:
                status, text = self._exchange(client, "POST", f"{self._base}/chat/completions", body)
                if status != 200:
                    return JudgeError(f"the judge at {self.url} answered with status {status}: {text[:200]!r}")
                return _content(text)
            except _TransientError as error:
                reason = error
                self._wait(attempt, error, last=attempt == self.retries)
        return JudgeError(f"the judge at {self.url} failed {self.retries + 1} times, at last with: {reason}")

    def _exchange(self, client: Any, method: str, address: str, body: Any) -> tuple[int, str]:
        """Status and text of one exchange; the time limit holds for the whole of it, however slowly it drips."""
        import httpx

        deadline = time.monotonic() + self.timeout
        try:
            with client.stream(method, address, json=body) as response:
                parts: list[bytes] = []
                for part in response.iter_bytes():
                    parts.append(part)
                    if time.monotonic() > deadline:
                        raise _TransientError(f"no whole reply in {self.timeout:g} s")
        except httpx.HTTPError as error:
            raise _TransientError(f"{type(error).__name__}: {error}") from error
        except httpx.InvalidURL as error:
            raise UserError(f"judge_backend.url={self.url} is no address: {error}") from error
        status = response.status_code
        if status == 429 or status >= 500:
            raise _TransientError(f"status {status}", wait=_retry_after(response.headers.get("retry-after", "")))
        return status, b"".join(parts).decode("utf-8", errors="replace")

    def _wait(self, attempt: int, error: _TransientError, last: bool) -> None:
        if not last:
            time.sleep(max(min(error.wait, self.timeout), self.backoff * 2**attempt * random.uniform(0.5, 1.5)))


def _content(text: str) -> str:
    """The reply in a chat completion; one that was cut short on its way is worth another try."""
    try:
        content = json.loads(text)["choices"][0]["message"].get("content")
    except (json.JSONDecodeError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise _TransientError(f"not a chat completion: {text[:120]!r}") from error
    return content if isinstance(content, str) else ""


def _served_models(text: str) -> list[str]:
    try:
        return [str(entry["id"]) for entry in json.loads(text)["data"]]
    except (json.JSONDecodeError, KeyError, TypeError):
        return []


def _retry_after(value: str) -> float:
    try:
        return max(float(value), 0.0)
    except ValueError:
        return 0.0
