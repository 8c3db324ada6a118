"""A real browser for tests: Debian's Chromium, driven by playwright; a test that needs it is skipped without one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser."""
    program = next((path for path in map(shutil.which, NAMES) if path), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed")
    api = pytest.importorskip("playwright.sync_api", reason="the browser extra is not installed (playwright)")
    with api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@contextmanager
def opened(browser: Any, path: Any, *, width: int = 1280, height: int = 900, scheme: str = "light") -> Iterator[Any]:
    """A page with everything that went wrong in it as `page.complaints`; whatever leaves the machine is refused."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    page.complaints = []
    page.on("console", lambda message: message.type in ("error", "warning") and page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("dialog", lambda dialog: (page.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: request.url.split(":")[0] in ("file", "data", "blob")
            or page.complaints.append(f"request: {request.url}"))
    page.goto(f"file://{path}")
    yield page
    context.close()
