"""One module a command, each with `main(arguments)`."""
