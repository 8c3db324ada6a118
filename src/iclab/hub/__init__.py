"""Models in places where others find them: `push` and `pull`."""

from iclab.hub.sharing import pull, push

__all__ = ["pull", "push"]
