"""The playground: a page in which trained models read prompts that its visitor poisons, mixes and breaks.

    exhibits.py    which models are shown, their training, and their weights during it
    own.py         a page of the user's own models; own_prompts.py: their prompts
    order_curves.py   Mamba's order parameters along training, and their prediction
    ported.py      the models that the page can run, and what it reads of their weights
    page.py        the page that carries them
    app.js, app.css   the page's program, built from `playground/` at the project's root; not edited by hand
"""
