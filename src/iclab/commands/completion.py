"""`iclab completion`: a script with which a shell completes commands, options and ids."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import re

from iclab.commands import COMMANDS
from iclab.commands.options import Parser
from iclab.commands.theory import PAPERS
from iclab.core.errors import IclabError
from iclab.lab.verify import REFERENCES
from iclab.papers.catalogue import all_entries
from iclab.sweeps.engines import ENGINES

SHELLS = ("bash", "zsh", "fish")
HELP = """Print a script with which your shell completes commands, options and ids.

    iclab completion bash >> ~/.bashrc
    iclab completion zsh >> ~/.zshrc
    iclab completion fish > ~/.config/fish/completions/iclab.fish"""
VALUES = {"--scale": REFERENCES, "--engine": tuple(ENGINES), "--paper": tuple(PAPERS)}
"""The values of options that take one of a few."""
BASH = """_iclab() {{
  local words files=yes
  if [ "$COMP_CWORD" -eq 1 ]; then words="{commands} --help --version" files=
  else case "${{COMP_WORDS[1]}}" in
{cases}
    *) words="" ;;
  esac; fi
  case "${{COMP_WORDS[COMP_CWORD-1]}}" in
{values}
  esac
  case "${{COMP_WORDS[COMP_CWORD]}}" in -*) files= ;; esac
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
  if [ "$files" ]; then COMPREPLY+=($(compgen -f -- "${{COMP_WORDS[COMP_CWORD]}}")); fi
}}
complete -o filenames -F _iclab iclab
"""
ZSH = "autoload -U +X compinit && compinit -i; autoload -U +X bashcompinit && bashcompinit\n"


def main(arguments: list[str]) -> None:
    """Print the script for one shell."""
    parser = Parser("completion", HELP)
    parser.add_argument("shell", metavar="SHELL", help=", ".join(SHELLS))
    shell = parser.parse_args(arguments).shell
    if shell not in SHELLS:
        raise IclabError(f"shell must be one of {', '.join(SHELLS)}, got {shell!r}")
    words = {command: words_of(command) for command in COMMANDS}
    print(fish_script(words) if shell == "fish" else (ZSH if shell == "zsh" else "") + bash_script(words), end="")


def words_of(command: str) -> list[str]:
    """What may follow a command: its options, as its help lists them, and for `reproduce` the ids."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
        if command != "completion":
            importlib.import_module(f"iclab.commands.{command}").main(["--help"])
    options = re.findall(r"^ +(?:-\w, )?(--[\w.-]+)", text.getvalue(), flags=re.MULTILINE)
    positional = {"reproduce": [*dict.fromkeys(entry.room for entry in all_entries().values()), *all_entries()],
                  "completion": list(SHELLS)}.get(command, [])
    return [*positional, *dict.fromkeys([*options, "--help"])]


def bash_script(words: dict[str, list[str]]) -> str:
    """Completion for bash, and with bashcompinit for zsh."""
    cases = "\n".join(f'    {command}) words="{" ".join(of)}" ;;' for command, of in words.items())
    values = "\n".join(f'    {option}) words="{" ".join(of)}" files= ;;' for option, of in VALUES.items())
    return BASH.format(commands=" ".join(words), cases=cases, values=values)


def fish_script(words: dict[str, list[str]]) -> str:
    """Completion for fish, with what each command does."""
    lines = [f"complete -c iclab -n __fish_use_subcommand -f -a {command} -d {json.dumps(COMMANDS[command])}"
             for command in words]
    for command, of in words.items():
        at = f"complete -c iclab -n '__fish_seen_subcommand_from {command}'"
        lines += [f"{at} {_fish_word(word)}" for word in of]
    return "\n".join(lines) + "\n"


def _fish_word(word: str) -> str:
    if word in VALUES:
        return f"-x -l {word[2:]} -a '{' '.join(VALUES[word])}'"
    return f"-l {word[2:]}" if word.startswith("--") else f"-a {word}"
