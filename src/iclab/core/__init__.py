"""What everything else is built on: specs, the registry, parsing, identity, files, errors."""
