"""One module per command, each with `main(arguments)`."""

COMMANDS = {
    "list": "list every figure, table and claim that can be reproduced",
    "reproduce": "run figures and claims, write report.html, claims.json, figures and their numbers",
    "verify": "compare the claims of a run with the reference that ships with iclab",
    "play": "open the playground: poison prompts and watch trained models react, in the browser",
    "theory": "what the theorems say about a spec: premises met or not, thresholds, scalings",
    "notation": "the papers' symbols and the fields that hold them",
    "train": "train one model and save it",
    "eval": "measure the error of a saved model under any attack",
    "push": "share a saved model, with a model card, in a folder, at a URL or on the Hugging Face Hub",
    "pull": "fetch a shared model into a checkpoint",
    "sweep": "train and measure every run that a sweep file describes, locally or on a Ray cluster",
    "results": "show or export what the sweeps in a store have measured",
    "chain": "predict and measure whether step-by-step prompting beats direct prompting",
    "completion": "print a script that completes commands, options and ids in bash, zsh or fish",
    "bench": "time training against eager and compiled PyTorch (needs the torch extra)",
}
"""Every command and what it does."""
