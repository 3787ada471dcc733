"""A real Chromium, and the service of pages that it looks at."""

import shutil
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fastapi import FastAPI
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, sync_playwright
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from cli.server import listen, serving, url_of
from tests.live.harness.fetching import ran

_HERE = Path(__file__).parent
# Nothing is asked of its maker's servers, and a container may have no sandbox of its own.
_FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
# A picture is drawn by a script into the figure that has its name.
_DRAWN = "() => [...document.querySelectorAll('figure[data-picture]')].every(each => each.querySelector('canvas, svg'))"


class BrowserError(RuntimeError):
    """The browser could not be had; the message is why."""


def tools_to_fetch() -> Sequence[str]:
    """The programs that are needed to have a browser: none where there is one on the PATH."""
    return () if shutil.which("chromium") else ("apt-get", "dpkg-deb")


def fetched_browser() -> Path:
    """The path of a Chromium, fetched the first time where none is on the PATH. Errors: BrowserError."""
    done = ran(_HERE / "fetch_browser.sh")
    if done.returncode:
        message = f"Chromium did not come from Debian's packages: {done.stderr.strip()[-2000:]}"
        raise BrowserError(message)
    return Path(done.stdout.strip())


@contextmanager
def running_browser(program: Path) -> Iterator[Browser]:
    """The browser, until the block ends."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=_FLAGS)
        yield browser
        browser.close()


@contextmanager
def served_pages(app: ASGIApp) -> Iterator[str]:
    """The address of the app on a free port, until the block ends: `http://127.0.0.1:PORT`."""
    bound = listen("127.0.0.1", 0, search=False)
    with serving(app, bound):  # type: ignore[arg-type]  # it serves whatever speaks ASGI
        yield url_of(bound)


class Below:
    """The app behind a reverse proxy that hands on what is asked below `prefix`, without it, and nothing else.

    With `signed_in`, a name and a password, it shows the app these and none of the caller's.
    """

    def __init__(self, prefix: str, app: FastAPI, *, signed_in: tuple[str, str] | None = None) -> None:
        self._prefix = prefix
        self._app = app
        self._signed_in = signed_in
        self.state = app.state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand one request on, or refuse it."""
        if scope["type"] == "http" and not scope["path"].startswith(f"{self._prefix}/"):
            await PlainTextResponse("not handed on", status_code=404)(scope, receive, send)
            return
        path = scope.get("path", "").removeprefix(self._prefix)
        headers = scope.get("headers", [])
        if self._signed_in is not None:
            shown = b"Basic " + b64encode(":".join(self._signed_in).encode())
            headers = [
                *((name, value) for name, value in headers if name != b"authorization"),
                (b"authorization", shown),
            ]
        await self._app({**scope, "path": path, "raw_path": path.encode(), "headers": headers}, receive, send)


class Watched:
    """A page of a browser, and what happens while it is open: requests, failed ones, and what the console is told."""

    def __init__(self, context: BrowserContext) -> None:
        self.page: Page = context.new_page()
        self.requested: list[str] = []
        self.failed: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requested.append(request.url))
        self.page.on("requestfailed", self._missed)
        self.page.on("console", self._told)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def open(self, address: str) -> None:
        """Go to the address, and wait until every picture of the page is drawn. Playwright's own errors."""
        self.page.goto(address)
        self.page.wait_for_function(_DRAWN)

    def _missed(self, request: Request) -> None:
        # A stream of events ends when its page is left.
        if request.resource_type != "eventsource":
            self.failed.append(f"{request.url}: {request.failure}")

    def _told(self, message: ConsoleMessage) -> None:
        # A page that is an answer 404 is told to the console too.
        is_answer = message.location["url"] == self.page.url and message.text.startswith("Failed to load resource")
        if message.type in {"error", "warning"} and not is_answer:
            self.complaints.append(f"{message.type}: {message.text}")
