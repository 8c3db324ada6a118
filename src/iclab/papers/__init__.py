"""The papers: one folder each, one file a figure, table or claim."""
