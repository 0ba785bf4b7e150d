"""The commands and their options, one module for each. They import `matrixdp.cli.actions` only when they run."""
