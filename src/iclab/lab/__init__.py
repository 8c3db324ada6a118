"""The laboratory: entries, what they measure, and how claims are judged."""
