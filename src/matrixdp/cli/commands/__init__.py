"""One command a file. They import click and nothing that is slow."""
