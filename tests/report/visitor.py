"""What a visitor of the playground does and sees."""

from __future__ import annotations

OTHER = {"+": "\u2212", "\u2212": "+"}
"""The other sign."""


def go(page, link):
    """Follow a link within the page. The event is sent by hand: the browser sends it late, or not at all if the
    address does not change."""
    page.evaluate("""link => new Promise(done => { history.replaceState(null, '', link);
        dispatchEvent(new HashChangeEvent('hashchange')); setTimeout(done, 20); })""", link)


def turn(page, field, value):
    """Move a slider or choose from a list as a visitor does."""
    control = page.locator(f"[data-field='{field}']")
    if control.evaluate("control => control.tagName") == "SELECT":
        control.select_option(str(value))
    else:
        control.fill(str(value))


def tokens(page):
    """The examples on the page: id, poisoned, the sign shown, whether it is marked as wrong."""
    return page.evaluate("""() => [...document.querySelectorAll('.tokens .token:not(.query)')].map(token => [
        Number(token.dataset.id), token.getAttribute('aria-pressed') === 'true',
        token.querySelector('.label').textContent, token.querySelector('.label').matches('.lies')])""")


def outputs(page):
    return page.evaluate("[...document.querySelectorAll('[data-output]')].map(shown => Number(shown.dataset.output))")


def strip(page, model, name):
    """Heights of the bars of a strip, by column, as shares of the tallest."""
    return page.evaluate("""([model, name]) => { const heights = [];
        for (const path of document.querySelectorAll(`[data-model=${model}] .strip.${name} path:not(.axis)`))
            for (const [, place, height] of path.getAttribute('d').matchAll(/M(\\d+)\\.14 [\\d.]+h.72v([\\d.]+)/g))
                heights[place] = Number(height);
        const most = Math.max(...heights); return heights.map(height => height / most); }""", [model, name])
