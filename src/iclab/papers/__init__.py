"""The papers: one folder each, one file per figure, table or claim."""
