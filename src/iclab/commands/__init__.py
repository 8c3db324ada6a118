"""One module per command, each with `main(arguments)`."""
