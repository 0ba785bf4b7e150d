"""Releases: a `Request` is planned without the data (`plan`), and run with them (`run`), which gives an `Outcome`."""
