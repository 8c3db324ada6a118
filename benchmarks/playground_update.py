"""How long one update of the playground takes, from an input event to the new layout.

All models read the changed prompt (20 examples) and the page is rendered again. Not included: painting, and the errors
over random prompts, which are computed in the next frame. Needs Chromium and the browser extra.
Run: `python benchmarks/playground_update.py [PAGE]`, with a page written by `iclab play` [default:
results/playground.html].
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

FRAME = 1000 / 60
CHANGES = {"poison": {"fraction": (0.3, 0.6, 0.35, 0.55), "scale": (3, 1, 2), "trained": (8, 0, 3, 5)},
           "thought": {"right": (0.7, 0.9, 0.8), "matching": (0.8, 0.5), "trained": (7, 0, 3)},
           "softmax": {"sum": (1.28, 0, -0.6), "pruned": (0.1, 0.5, 0.3), "trained": (4, 0, 2)}}
MEASURE = """async ([field, values]) => {
    const control = document.querySelector(`[data-field="${field}"]`), times = [];
    for (let i = 0; i < 60; i++) {
        await new Promise(done => setTimeout(done, 30));
        const began = performance.now();
        control.value = values[i % values.length];
        control.dispatchEvent(new Event('input', { bubbles: true }));
        for (let turn = 0; turn < 5; turn++) await null;  // rendering finishes before the next task
        document.body.offsetHeight;                       // forces layout
        times.push(performance.now() - began);
    }
    return times.sort((a, b) => a - b); }"""
READ = """() => { const began = performance.now();
    for (let i = 0; i < 200; i++) for (const model of iclab.gated) iclab.read(model, model.weights[8], iclab.columns);
    return (performance.now() - began) / 200; }"""


def main() -> None:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "results/playground.html").resolve()
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(path.as_uri())
        page.wait_for_timeout(3000)
        print(f"all gated models read 20 examples: {page.evaluate(READ):.2f} ms")
        for tab, fields in CHANGES.items():
            page.goto(f"{path.as_uri()}#{tab}?length=20")
            page.wait_for_timeout(4000)
            for field, values in fields.items():
                times = page.evaluate(MEASURE, [field, values])
                median, ninth_decile = times[len(times) // 2], times[int(0.9 * len(times))]
                print(f"{tab:8} {field:9} median {median:5.1f} ms ({median / FRAME:4.0%} of a frame), "
                      f"90 % below {ninth_decile:5.1f} ms")
        browser.close()


if __name__ == "__main__":
    main()
