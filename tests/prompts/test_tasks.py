"""Task families."""

from __future__ import annotations

from collections import Counter

import pytest

from iclab.prompts.tasks import all_tasks, cyclic_tasks, parse_tasks


@pytest.mark.parametrize("patterns", [3, 6, 9])
def test_cyclic_families_cover_every_pattern_and_label_equally(patterns):
    for shifts in range(1, patterns):
        tasks = cyclic_tasks(patterns, shifts)
        assert len(set(tasks)) == patterns * shifts
        for side in (0, 1):
            assert set(Counter(task[side] for task in tasks).values()) == {shifts}
    assert set(cyclic_tasks(patterns, patterns - 1)) == set(all_tasks(patterns))


def test_unseen_tasks_are_the_rest():
    seen, unseen = parse_tasks("cyclic:2", 6), parse_tasks("unseen:2", 6)
    assert not set(seen) & set(unseen)
    assert set(seen) | set(unseen) == set(all_tasks(6))
