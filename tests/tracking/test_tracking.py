"""What a tracker's own library reads back is what was trained, the last record included."""

from __future__ import annotations

import json
import struct
import sys
import warnings

import numpy as np
import pytest

from iclab import IclabError, MLflow, TensorBoard, Trackio, WandB, load_checkpoint, replace, train, train_many
from iclab.cli import main
from iclab.tracking import TRACKERS, tracker
from iclab.tracking.tensorboard import WRITER
from iclab.tracking.tracker import run_names, settings_of

PACKAGES = {"tensorboard": WRITER, "wandb": "wandb", "mlflow": "mlflow", "trackio": "trackio"}


def corner(setup, params):
    return {"corner": params[0].W_B[0, 0]}


def read_tensorboard(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    for path in sorted(folder.iterdir()):
        events = EventAccumulator(str(path)).Reload()
        raw = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
        told = HParamsPluginData.FromString(raw).session_start_info.hparams
        settings = {name: getattr(value, value.WhichOneof("kind")) for name, value in told.items()}
        text = {name: events.Tensors(name)[0].tensor_proto.string_val[0].decode() for name in ("spec", "status")}
        assert json.loads(text["spec"].strip("`json\n")) == settings
        scalars = {name: [(event.step, event.value) for event in events.Scalars(name)]
                   for name in events.Tags()["scalars"]}
        yield settings, scalars, text["status"]


def read_mlflow(folder):
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{folder}/mlflow.db")
    experiment = client.get_experiment_by_name("iclab").experiment_id
    for run in sorted(client.search_runs([experiment]), key=lambda run: run.data.params["init_seed"]):
        scalars = {name: [(value.step, value.value) for value in client.get_metric_history(run.info.run_id, name)]
                   for name in run.data.metrics}
        assert run.info.status == "FINISHED"
        yield run.data.params, scalars, run.data.tags["status"]


def read_wandb(folder):
    """Its records, in the blocks of 32 KiB in which LevelDB keeps a log; W&B has no public reader of them."""
    from wandb.proto.wandb_internal_pb2 import Record

    def records(content):
        place, whole = 7, b""
        while place + 7 <= len(content):
            if (left := 2**15 - place % 2**15) < 7:
                place += left
                continue
            _, length, kind = struct.unpack("<IHB", content[place:place + 7])
            whole += content[place + 7:place + 7 + length]
            place += 7 + length
            if kind in (1, 4):  # a whole record, or the last piece of one
                yield Record.FromString(whole)
                whole = b""

    runs = []
    for path in folder.glob("wandb/offline-run-*/*.wandb"):
        settings, scalars, summary = {}, {}, {}
        for record in records(path.read_bytes()):
            kind = record.WhichOneof("record_type")
            if kind == "run":
                settings |= {item.key: json.loads(item.value_json) for item in record.run.config.update}
            elif kind == "history":
                row = {"".join(item.nested_key) or item.key: json.loads(item.value_json)
                       for item in record.history.item}
                for name, value in row.items():
                    scalars.setdefault(name, []).append((record.history.step.num, value))
            elif kind == "summary":
                summary |= {item.key: json.loads(item.value_json) for item in record.summary.update if item.key}
        runs.append((settings, scalars, summary["status"]))
    return sorted(runs, key=lambda run: run[0]["init_seed"])


def read_trackio(folder):
    import trackio
    from trackio.sqlite_storage import SQLiteStorage

    for run in sorted(trackio.Api().runs("some"), key=lambda run: run.config["init_seed"]):
        rows = SQLiteStorage.get_logs("some", run.name)
        scalars = {name: [(row["step"], row[name]) for row in rows] for name in rows[0]}
        yield run.config, scalars, None


def made(name, folder):
    return {"tensorboard": lambda: TensorBoard(folder), "wandb": lambda: WandB("some", folder),
            "mlflow": lambda: MLflow(folder), "trackio": lambda: Trackio("some")}[name]()


READERS = {"tensorboard": read_tensorboard, "wandb": read_wandb, "mlflow": read_mlflow, "trackio": read_trackio}


@pytest.mark.filterwarnings("ignore")  # of the trackers' packages
@pytest.mark.parametrize("name", ["tensorboard", *(pytest.param(name, marks=pytest.mark.slow)
                                                   for name in ("wandb", "mlflow", "trackio"))])
def test_a_trackers_library_reads_what_was_trained(tiny_run, tmp_path, monkeypatch, capfd, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip(PACKAGES[name], reason=f"the {name} extra is not installed")
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path))
    if name == "trackio":  # it reads the variable when it is imported
        monkeypatch.setattr("trackio.utils.TRACKIO_DIR", tmp_path)
        monkeypatch.setattr("trackio.sqlite_storage.TRACKIO_DIR", tmp_path)
    runs = [replace(tiny_run.seeded(seed), training=replace(tiny_run.training, steps=25)) for seed in (0, 1)]
    trained = train_many(runs, width=1, probe=corner, callbacks=[made(name, tmp_path)])
    logged = list(READERS[name](tmp_path))
    assert len(logged) == 2
    for one, (settings, scalars, status) in zip(trained, logged, strict=True):
        for path, value in settings_of(one.run).items():
            assert settings[path] in (value, str(value))
        assert settings["model.member"] == "mamba"
        steps = one.steps.tolist()
        assert steps[-1] == 25
        for tag, values in (("loss", one.loss), ("probes/corner", one.probes["corner"]), ("learning_rate", [0.1] * 3)):
            assert [step for step, _ in scalars[tag]] == steps
            np.testing.assert_allclose([value for _, value in scalars[tag]], values, rtol=1e-7)
        assert status == (None if name == "trackio" else "trained")
    assert capfd.readouterr().out == ""


def test_runs_are_named_by_what_tells_them_apart(tiny_run):
    faster = replace(tiny_run, training=replace(tiny_run.training, learning_rate=0.5))
    linear = replace(tiny_run, model=replace(tiny_run.model, member="linear"))
    odd = replace(faster, prompts=replace(tiny_run.prompts, tasks=((0, 1), (1, 2))), data_seed=7)
    assert run_names([tiny_run, faster, linear.seeded(3), odd]) == [
        "gated_attention-mamba-tasks=all-learning_rate=0.1-seed=0",
        "gated_attention-mamba-tasks=all-learning_rate=0.5-seed=0",
        "gated_attention-linear-seed=3",
        "gated_attention-mamba-tasks=_0,_1_,_1,_2_-learning_rate=0.5-seeds=0,7"]


def test_a_training_logged_again_has_a_folder_of_its_own(tiny_run, tmp_path):
    pytest.importorskip(WRITER, reason="the tensorboard extra is not installed")
    for seed in (3, 3, 4):
        train(replace(tiny_run, init_seed=seed), callbacks=[TensorBoard(tmp_path / "logs")])
    assert sorted(path.name for path in (tmp_path / "logs").iterdir()) == [
        f"gated_attention-mamba-batch_size=16-learning_rate=0.1-{seeds}" for seeds in (
            "seeds=3,0", "seeds=3,0-2", "seeds=4,0")]
    (tmp_path / "file").write_text("")
    with pytest.raises(IclabError, match=r"TensorBoard failed in begin of run 0: (FileExists|NotADirectory)Error"):
        train(tiny_run, callbacks=[TensorBoard(tmp_path / "file")])


def test_a_stopped_training_says_so_in_its_log(tiny_run, tmp_path):
    pytest.importorskip(WRITER, reason="the tensorboard extra is not installed")

    def unreadable(setup, params):
        raise ValueError("no probe")

    with pytest.raises(ValueError, match="no probe"):
        train(tiny_run, probe=unreadable, callbacks=[TensorBoard(tmp_path)])
    (_, scalars, status), = read_tensorboard(tmp_path)
    assert (scalars, status) == ({}, "stopped by ValueError")


def test_the_command_logs(tmp_path, capsys):
    pytest.importorskip(WRITER, reason="the tensorboard extra is not installed")
    model, logs = tmp_path / "m.safetensors", tmp_path / "logs"
    small = ["--prompts.dimension", "9", "--prompts.relevant-patterns", "3", "--prompts.irrelevant-patterns", "3",
             "--prompts.outlier-patterns", "2", "--prompts.prompt-length", "6", "--prompts.tasks", "all",
             "--training.steps", "20", "--training.record-every", "10", "--training.batch-size", "16"]
    assert main(["train", "--out", str(model), "--log", f"tensorboard:{logs}", "--json", *small]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "trained"
    (_, scalars, _), = read_tensorboard(logs)
    assert [step for step, _ in scalars["loss"]] == [10, 20]
    assert main(["train", "--resume", str(model), "--out", str(model), "--training.steps", "30", "--log",
                 f"tensorboard:{logs}"]) == 0
    *_, (_, scalars, _) = read_tensorboard(logs)
    assert scalars["loss"] == [(30, pytest.approx(load_checkpoint(model).loss[-1], rel=1e-6))]


@pytest.mark.parametrize(("text", "hint"), [("tensorbord:x", "; did you mean tensorboard?"), ("tensorboard", ""),
                                            ("wandb:", ""), ("", ""), (":x", "")])
def test_a_tracker_that_is_not_there_is_one_line(tmp_path, monkeypatch, capsys, text, hint):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--log", text]) == 2
    assert capsys.readouterr().err == (f"iclab: log must be one of tensorboard:DIR, wandb:PROJECT, mlflow:DIR, "
                                       f"trackio:PROJECT, got {text!r}{hint}\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", TRACKERS)
def test_a_missing_package_is_one_line_that_names_the_extra(monkeypatch, name):
    monkeypatch.setitem(sys.modules, PACKAGES[name], None)
    with pytest.raises(IclabError, match=rf"needs the package {name}: pip install '\.\[{name}\]'"):
        tracker(f"{name}:x")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_folder_that_mlflow_cannot_write_is_one_line(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("mlflow", reason="the mlflow extra is not installed")
    (tmp_path / "file").write_text("")
    with pytest.raises(IclabError, match="an MLflow log must be a folder that can be written") as refused:
        MLflow(tmp_path / "file")
    assert "\n" not in str(refused.value)
