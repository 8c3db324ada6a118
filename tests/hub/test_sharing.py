"""A pulled model is the model that was pushed, and half a push is none."""

from __future__ import annotations

import inspect
import json
import re
import sys
import types

import fsspec
import jax
import numpy as np
import pytest

import iclab
from iclab import CheckpointError, IclabError, measure_error, pull, push, replace, save_checkpoint, train
from iclab.cli import main
from iclab.hub import model_card, places


@pytest.fixture(scope="module")
def trained():
    from iclab import Classification, GatedAttention, Run, Training

    prompts = Classification(dimension=9, relevant_patterns=3, irrelevant_patterns=3, outlier_patterns=2,
                             prompt_length=6, outlier_fraction=0.4)
    return train(Run(model=GatedAttention(member="mamba"), prompts=prompts,
                     training=Training(steps=30, batch_size=16, learning_rate=0.1, record_every=10)))


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """Hugging Face's library with a hub in memory."""
    class Hub:
        repositories, private, commits = {}, {}, []

        def create_repo(self, repo_id, *, exist_ok=False, private=None):
            assert exist_ok or repo_id not in self.repositories
            if repo_id.startswith("others/"):
                raise PermissionError("403 Forbidden:\nyou may not write to others")
            self.repositories.setdefault(repo_id, {})
            self.private.setdefault(repo_id, private)

        def create_commit(self, repo_id, operations, *, commit_message):
            self.repositories[repo_id] |= {one.path_in_repo: one.path_or_fileobj for one in operations}
            self.commits.append(commit_message)

        def hf_hub_download(self, repo_id, filename):
            path = tmp_path / "downloaded"
            path.write_bytes(self.repositories[repo_id][filename])
            return str(path)

    library = types.SimpleNamespace(HfApi=Hub, CommitOperationAdd=types.SimpleNamespace)
    monkeypatch.setitem(sys.modules, "huggingface_hub", library)
    return Hub


def same(one, other):
    jax.tree.map(np.testing.assert_array_equal, (one.params, one.optimizer, one.steps, one.loss),
                 (other.params, other.optimizer, other.steps, other.loss))
    assert other.run == one.run
    batch = one.run.prompts.sample(5, 50)
    np.testing.assert_array_equal(one(batch), other(batch))


@pytest.mark.parametrize("where", ["{folder}/new/model", "memory://shared/model", "hf://some-one/tiny_mamba.1"])
def test_a_pulled_model_is_the_one_that_was_pushed(trained, tmp_path, hub, where):
    where = where.format(folder=tmp_path)
    push(trained, where)
    same(trained, pull(where))
    longer = train(replace(trained.run, training=replace(trained.run.training, steps=40)), start=trained)
    push(longer, where)
    same(longer, pull(where))


def test_a_hub_gets_one_commit_into_a_repository_that_is_private_if_new(trained, hub):
    push(trained, "hf://one/model")
    assert list(hub.repositories["one/model"]) == ["README.md", "model.safetensors", "config.json"]
    assert hub.private["one/model"] is True
    assert len(hub.commits) == 1
    assert b'iclab.pull("hf://one/model")' in hub.repositories["one/model"]["README.md"]


def test_the_hubs_library_has_what_is_called():
    library = pytest.importorskip("huggingface_hub", reason="the hub extra is not installed")
    api = library.HfApi
    inspect.signature(api.create_repo).bind(api, "one/model", exist_ok=True, private=True)
    inspect.signature(api.create_commit).bind(api, "one/model", [], commit_message="text")
    inspect.signature(api.hf_hub_download).bind(api, "one/model", "config.json")
    operation = library.CommitOperationAdd(path_in_repo="config.json", path_or_fileobj=b"{}")
    assert operation.path_in_repo == "config.json"


@pytest.mark.parametrize("where", ["{folder}/model", "memory://halves/model"])
def test_half_a_push_is_no_model_and_is_mended_by_another(trained, tmp_path, monkeypatch, where):
    where = where.format(folder=tmp_path)
    other = replace(trained, loss=trained.loss + 1)
    write = places.Folder.write

    def push_part(model, count):
        def write_part(self, files):
            write(self, dict(list(files.items())[:count]))
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(places.Folder, "write", write_part)
            with pytest.raises(KeyboardInterrupt):
                push(model, where)

    for count in (0, 1, 2):
        push_part(trained, count)
        with pytest.raises(CheckpointError, match=r"pushed whole, got .* without config.json"):
            pull(where)
    push(trained, where)
    push_part(other, 1)
    same(trained, pull(where))
    push_part(other, 2)
    with pytest.raises(CheckpointError, match=r"a model.safetensors other than its config.json says; push it again"):
        pull(where)
    push(other, where)
    same(other, pull(where))


def test_the_card_tells_what_was_trained_and_its_program_loads_it(trained, tmp_path):
    attack = replace(trained.run.prompts, label_rule="flip", outlier_fraction=0.6)
    rate = measure_error(trained, attack, count=500)
    push(trained, tmp_path, errors={"60 % flipped | all": rate, "my own": 0.25})
    card = (tmp_path / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: iclab\n")
    assert f"| 30 | {trained.loss[-1]:.4g} | trained |" in card
    assert f"| 60 % flipped \\| all | {rate.error:.4f} | [{rate.low:.4f}, {rate.high:.4f}] | 500 |" in card
    assert "| my own | 0.2500 |" in card
    assert str(tmp_path) not in card
    for path, value in iclab.core.parse.flat(trained.run).items():
        if not path.endswith(".kind"):
            assert f"| `{path.split('.')[-1]}` | `{json.dumps(value)}` |" in card, path
    names: dict = {}
    exec(re.search(r"```python\n(.*?)```", card, re.S)[1].replace("THIS_FOLDER", str(tmp_path)), names)
    same(trained, names["model"])
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["steps"], config["loss"]) == (30, trained.loss[-1])
    assert config["errors"]["my own"] == 0.25
    assert config["run"]["prompts"]["dimension"] == 9


def test_a_diverged_model_can_be_shared_and_says_so(trained, tmp_path):
    push(replace(trained, loss=trained.loss * np.nan), tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["loss"] is None
    assert "diverged at step 10" in (tmp_path / "README.md").read_text()
    assert pull(tmp_path).state == "diverged"


def own_rule(clean, coin, x):
    return -clean


def test_what_a_file_cannot_hold_is_told_and_needed(trained, tmp_path):
    run = replace(trained.run, prompts=replace(trained.run.prompts, label_rule=own_rule))
    push(replace(trained, run=run), tmp_path)
    assert 'iclab.pull("THIS_FOLDER", run)' in (tmp_path / "README.md").read_text()
    with pytest.raises(CheckpointError, match="pass the run"):
        pull(tmp_path)
    assert pull(tmp_path, run).run == run


@pytest.mark.parametrize(("name", "content"), [("README.md", "# My project\n"), ("config.json", "{}"),
                                               ("model.safetensors", "")])
def test_files_of_others_are_not_overwritten(trained, tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(IclabError, match=f"where must be a folder without another {name}"):
        push(trained, tmp_path)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, content)]


def test_what_was_not_pushed_is_refused(trained, tmp_path):
    for content in ("{", "[]", "{}", '{"format": "other"}'):
        (tmp_path / "config.json").write_text(content)
        with pytest.raises(CheckpointError, match=r"that iclab pushed, got .* with another config.json"):
            pull(tmp_path)


@pytest.mark.parametrize(("where", "message"), [
    ("", "where must be a folder, an fsspec URL or hf://OWNER/NAME, got ''"),
    ("hf://one", "where must be hf://OWNER/NAME, got 'hf://one'"),
    ("hf://a/b/c", "where must be hf://OWNER/NAME"),
    ("nosuch://x", "where must be a folder or an fsspec URL that can be reached, got 'nosuch://x'"),
    ("hf://others/model", r"where must be a repository .*, got 'hf://others/model' \("),
    ("{folder}/file", "(cannot write|without config.json)"),
])
def test_a_place_that_cannot_be_is_one_line(trained, tmp_path, hub, where, message):
    (tmp_path / "file").write_text("")
    where = where.format(folder=tmp_path)
    for action in (lambda: push(trained, where), lambda: pull(where)):
        with pytest.raises(IclabError, match=message) as refused:
            action()
        assert "\n" not in str(refused.value)


def test_without_the_hubs_library_the_extra_is_named(monkeypatch, trained):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(IclabError, match=r"needs the package huggingface_hub: pip install '\.\[hub\]'"):
        push(trained, "hf://one/model")


def test_an_error_that_is_no_number_is_refused(trained, tmp_path):
    with pytest.raises(IclabError, match=r"errors\['x'\] must be a number or an ErrorRate, got 'small'"):
        push(trained, tmp_path, errors={"x": "small"})


def test_the_commands_share_and_fetch(trained, tmp_path, capsys):
    one, other, where = tmp_path / "one.safetensors", tmp_path / "other.safetensors", tmp_path / "shared"
    save_checkpoint(one, trained)
    assert main(["push", str(one), str(where), "--measure", "300"]) == 0
    assert re.search(r"\| prompts as in training \| 0\.\d{4} \| .* \| 300 \|", (where / "README.md").read_text())
    assert main(["pull", str(where), str(other)]) == 0
    assert f"gated_attention trained, 30 steps, loss {trained.loss[-1]:.4g}, saved to" in capsys.readouterr().out
    assert other.read_bytes() == one.read_bytes()
    for arguments in (["push", str(one)], ["push", str(tmp_path / "none"), str(where)], ["pull", str(tmp_path), "x"],
                      ["push", str(one), str(where), "--measure=-1"]):
        assert main(arguments) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_the_card_says_how_much_poison_and_which_settings_differ(trained, tmp_path):
    @iclab.spec
    class Unexplained:
        width: int = 4
        depth: int = 2

    push(trained, tmp_path)
    card = (tmp_path / "README.md").read_text()
    assert "- Poison in training: 40 % of the examples in a prompt; rule for their labels: random." in card
    assert "`prompt_length` = `6`" in card
    assert "`member` = " not in card.partition("## Error")[0], "mamba is the default"
    assert "`learning_rate` = `0.1`" in card
    assert model_card._described(Unexplained(width=8)) == "`Unexplained`. Not the defaults: `width` = `8`."
    assert model_card._described(Unexplained()) == "`Unexplained`. All settings are the defaults, listed below."
    assert model_card._poison(iclab.Classification()) == "none."


@pytest.mark.slow
def test_chains_are_measured_step_by_step_and_direct(tmp_path):
    from iclab import Chain, ChainAttention, Run, Training

    run = Run(model=ChainAttention(), prompts=Chain(), training=Training(steps=2, loss="squared", batch_size=4))
    save_checkpoint(tmp_path / "m", train(run))
    assert main(["push", str(tmp_path / "m"), "memory://chains", "--measure", "64"]) == 0
    card = fsspec.filesystem("memory").cat_file("/chains/README.md").decode()
    assert "| chain of thought, 64 chains as in training | " in card
    assert "| direct, 64 chains as in training | " in card
