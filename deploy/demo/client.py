"""A person with a browser or a script with a token, using the portal through HTTP; for the checks and the tests."""

import html
import re
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from urllib.parse import urljoin

import requests

T = TypeVar("T")
TIMEOUT_SECONDS = 30
_HIDDEN = re.compile(r"<input[^>]*type=\"hidden\"[^>]*>")
_ATTRIBUTE = re.compile(r"(name|value)=\"([^\"]*)\"")


class RefusedError(Exception):
    """The portal answered with an error: `status` and the words it used."""

    def __init__(self, response: requests.Response) -> None:
        super().__init__(
            f"{response.request.method} {response.url}: {response.status_code} {response.text[:600]}"
        )
        self.status = response.status_code


class Client:
    """Somebody at the portal `url`; `ca_file` signs the provider's certificate."""

    def __init__(self, url: str, *, ca_file: str = "", token: str = "") -> None:
        self.url = url
        self.http = requests.Session()
        self.http.trust_env = False  # a CA bundle named in the environment would replace ours
        if ca_file:
            self.http.verify = ca_file
        if token:
            self.http.headers["Authorization"] = f"Bearer {token}"

    def get(self, path: str) -> requests.Response:
        """GET a page or a document."""
        return self._answer(self.http.get(self.url + path, timeout=TIMEOUT_SECONDS))

    def json(self, path: str) -> Any:
        """GET a JSON document."""
        return self.get(path).json()

    def post(self, path: str, body: Any = None, *, key: str = "") -> Any:
        """POST to the REST API; the JSON answer."""
        headers = {"Idempotency-Key": key} if key else {}
        response = self.http.post(self.url + path, json=body, headers=headers, timeout=TIMEOUT_SECONDS)
        return self._answer(response).json()

    def sign_in(self, username: str, password: str) -> None:
        """Sign in as a person does: to the provider's form and back."""
        page = self._answer(self.http.get(f"{self.url}/sign-in/", timeout=TIMEOUT_SECONDS))
        fields = hidden_fields(page.text) | {"username": username, "password": password}
        headers = {"Referer": page.url}
        landed = self._answer(self.http.post(page.url, fields, headers=headers, timeout=TIMEOUT_SECONDS))
        if not landed.url.startswith(self.url):
            raise RefusedError(landed)

    def submit_form(self, path: str, values: dict[str, str]) -> requests.Response:
        """Open the form at `path`, fill it, send it; the page it leads to."""
        page = self.get(path)
        fields = hidden_fields(page.text) | values
        headers = {"Referer": page.url}
        return self._answer(
            self.http.post(urljoin(page.url, page.url), fields, headers=headers, timeout=TIMEOUT_SECONDS)
        )

    def job(self, job_id: int) -> dict[str, Any]:
        """A job as the API shows it."""
        found: dict[str, Any] = self.json(f"/api/v1/jobs/{job_id}")
        return found

    def streams(self, job_id: int) -> list[dict[str, Any]]:
        """The log streams of a job."""
        found: list[dict[str, Any]] = self.json(f"/jobs/{job_id}/logs/streams")["streams"]
        return found

    def log_lines(self, job_id: int, stream_id: int) -> list[str]:
        """Every stored line of a stream."""
        found: list[str] = []
        while True:
            page = self.json(f"/jobs/{job_id}/logs/{stream_id}/lines?from={len(found)}&count=1000")
            found += [line["s"] for line in page["lines"]]
            if not page["lines"] or len(found) >= page["total"]:
                return found

    def follow(self, job_id: int, stream_id: int) -> Iterator[str]:
        """The events of a live log as raw server-sent-event lines."""
        path = f"{self.url}/jobs/{job_id}/logs/{stream_id}/follow"
        with self.http.get(path, stream=True, timeout=TIMEOUT_SECONDS) as response:
            self._answer(response)
            yield from response.iter_lines(decode_unicode=True)

    @staticmethod
    def _answer(response: requests.Response) -> requests.Response:
        if response.status_code >= 400:
            raise RefusedError(response)
        return response


def hidden_fields(page: str) -> dict[str, str]:
    """Names and values of a page's hidden inputs."""
    inputs = (dict(_ATTRIBUTE.findall(tag)) for tag in _HIDDEN.findall(page))
    return {each["name"]: html.unescape(each.get("value", "")) for each in inputs if "name" in each}


def wait_for(what: str, look: Callable[[], T | None], *, seconds: float = 120.0) -> T:
    """Call `look` until it gives something true, and return that; a lost connection counts as not yet.

    Raises TimeoutError that says what was waited for.
    """
    deadline = time.monotonic() + seconds
    trouble = ""
    while True:
        try:
            if found := look():
                return found
        except (requests.RequestException, RefusedError) as error:
            trouble = f" (last: {error})"
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:.0f} s for {what}{trouble}")
        time.sleep(0.1)
