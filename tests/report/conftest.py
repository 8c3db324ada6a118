"""One browser for all tests of pages, and the playground with random weights, made once."""

from __future__ import annotations

import pytest
from browser import chromium, opened
from exhibited import random_models
from visitor import go

from iclab.report.playground.page import render


@pytest.fixture(scope="session")
def models():
    return random_models()


@pytest.fixture(scope="session")
def path(models, tmp_path_factory):
    file = tmp_path_factory.mktemp("playground") / "playground.html"
    file.write_text(render(models))
    return file


@pytest.fixture(scope="session")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def one_page(browser, path):
    with opened(browser, path) as opened_page:
        yield opened_page


@pytest.fixture
def page(one_page):
    """The page in its default state; a test must leave no complaints in it."""
    go(one_page, "#poison")
    yield one_page
    assert one_page.complaints == []


@pytest.fixture
def looks(page):
    """Change the size of the window and the colour scheme; both are restored after the test."""
    def look(width, scheme):
        page.set_viewport_size({"width": width, "height": 844})
        page.emulate_media(color_scheme=scheme)

    yield look
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light")
