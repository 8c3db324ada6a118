"""Callbacks hear of every run, from beginning to end, however it ends."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from iclab import Callback, IclabError, SpecError, replace, train, train_many

LONG = 3_000_000
"""Steps of a training that takes a minute if nothing stops it."""


class Told(Callback):
    """Notes what it is told, and in which thread."""

    def __init__(self):
        self.events, self.threads = [], set()

    def of(self, index):
        return [(name, *rest) for name, place, *rest in self.events if place == index]

    def losses(self, index=0):
        return [(step, values["loss"]) for name, step, values in (e for e in self.of(index) if e[0] == "record")]

    def _note(self, *event):
        self.events.append(event)
        self.threads.add(threading.current_thread())

    def begin(self, index, run):
        self._note("begin", index, run)

    def record(self, index, step, values):
        self._note("record", index, step, values)

    def end(self, index, trained, error):
        self._note("end", index, trained, error)


def with_training(run, **changes):
    return replace(run, training=replace(run.training, **changes))


def check_whole(told, index, run, trained):
    first, *records, last = told.of(index)
    assert first == ("begin", run)
    assert {name for name, *_ in records} == {"record"}
    assert told.losses(index) == list(zip(trained.steps.tolist(), trained.loss.tolist(), strict=True))
    assert last[0] == "end"
    assert last[1] is trained
    assert last[2] is None


@pytest.mark.parametrize(("backend", "steps", "every"), [("fused", 25, 10), ("fused", 7, 50), ("fused", 60, 1),
                                                         ("xla", 25, 10)])
def test_every_record_is_told_including_the_last(tiny_run, backend, steps, every):
    run, told = with_training(tiny_run, backend=backend, steps=steps, record_every=every), Told()
    trained = train(run, callbacks=[told])
    assert told.losses()[-1][0] == steps
    check_whole(told, 0, run, trained)
    values = told.events[1][3]
    assert values["learning_rate"] == run.training.learning_rate
    assert values["steps_per_second"] > 0


def test_runs_of_several_packs_are_told_apart_and_in_the_callers_thread(tiny_run):
    runs = [tiny_run.seeded(seed) for seed in range(5)] + [with_training(tiny_run, steps=11)]
    told, again = Told(), Told()
    trained = train_many(runs, callbacks=[told, again], width=2, workers=2)
    for index, run in enumerate(runs):
        check_whole(told, index, run, trained[index])
    assert told.threads == {threading.current_thread()}
    assert again.events == told.events


def several(setup, params):
    return {"corner": params[0].W_B[0, 0], "row": params[0].W_B[0]}


def test_scalars_of_the_probe_are_told_and_nothing_larger(tiny_run):
    told = Told()
    trained = train(tiny_run, probe=several, callbacks=[told])
    corners = [values["probes/corner"] for name, _, *rest in told.events if name == "record" for values in rest[1:]]
    assert corners == trained.probes["corner"].tolist()
    assert "probes/row" not in told.events[1][3]


def test_a_resumed_run_tells_its_new_records_only(tiny_run):
    told, half = Told(), train(with_training(tiny_run, steps=20))
    whole = train(tiny_run, start=half, callbacks=[told])
    assert told.losses() == [(30, whole.loss[-1])]


def test_telling_does_not_change_a_bit_nor_where_calls_end(tiny_run, monkeypatch):
    from iclab.training.program import Program

    run = with_training(tiny_run, backend="xla", steps=100)
    lengths = []
    call_length = Program.call_length
    monkeypatch.setattr(Program, "call_length", lambda *args, **options: lengths.append(call_length(*args, **options))
                        or lengths[-1])
    silent = train(run)
    told = train(run, callbacks=[Told()])
    np.testing.assert_array_equal(silent.params[0].W_B, told.params[0].W_B)
    assert lengths == [50, 50] * 2


class Failing(Told):
    def __init__(self, method):
        super().__init__()
        self.method = method

    def _note(self, *event):
        super()._note(*event)
        if event[0] == self.method:
            raise ZeroDivisionError("no more ink")


@pytest.mark.parametrize(("method", "where"), [("begin", "begin of run 0"), ("record", "record of run 0 at step 10"),
                                               ("end", "end of run 0")])
def test_a_callback_that_fails_stops_the_training_and_the_others_end(tiny_run, method, where):
    failing, told = Failing(method), Told()
    with pytest.raises(IclabError) as stopped:
        train(tiny_run, callbacks=[failing, told])
    assert str(stopped.value) == f"the callback Failing failed in {where}: ZeroDivisionError: no more ink"
    assert isinstance(stopped.value.__cause__, ZeroDivisionError)
    names = [name for name, *_ in failing.events]
    assert names == {"begin": ["begin"], "record": ["begin", "record", "end"],
                     "end": ["begin", "record", "record", "record", "end"]}[method]
    assert [name for name, *_ in told.events] == ["begin", "record", "record", "record", "end"]
    assert told.events[-1][3] is (None if method == "end" else stopped.value)


def test_a_long_training_is_stopped_by_a_callback(tiny_run):
    with pytest.raises(IclabError, match=r"failed in record of run \d at step 10"):
        train_many([with_training(tiny_run.seeded(seed), steps=LONG) for seed in range(3)], width=1, workers=2,
                   callbacks=[failing := Failing("record")])
    assert len(failing.events) <= 6


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interruption_ends_what_has_begun(tiny_run, error):
    class Impatient(Told):
        def record(self, index, step, values):
            super().record(index, step, values)
            if step == 10:
                raise error

    impatient, told = Impatient(), Told()
    with pytest.raises(error):
        train(with_training(tiny_run, steps=LONG), callbacks=[told, impatient])
    assert told.losses()[-1][0] < LONG
    for follower in (told, impatient):
        name, _, trained, reason = follower.events[-1]
        assert (name, trained) == ("end", None)
        assert isinstance(reason, error)
        assert [event[0] for event in follower.events].count("end") == 1


def test_an_error_in_training_ends_what_has_begun_and_later_errors_are_notes(tiny_run):
    def unreadable(setup, params):
        raise ValueError("no probe")

    told, failing = Told(), Failing("end")
    with pytest.raises(ValueError, match="no probe") as stopped:
        train(tiny_run, probe=unreadable, callbacks=[failing, told])
    assert told.events[-1] == ("end", 0, None, stopped.value)
    assert "failed in end of run 0" in stopped.value.__notes__[-1]


def test_what_is_no_callback_is_refused(tiny_run):
    with pytest.raises(SpecError, match="callbacks must be objects with the methods begin, record and end"):
        train(tiny_run, callbacks=[print])
    with pytest.raises(SpecError, match="callbacks must be objects"):
        train(tiny_run, callbacks=[Told])
    with pytest.raises(SpecError, match="callbacks must be a list"):
        train(tiny_run, callbacks=Told())
