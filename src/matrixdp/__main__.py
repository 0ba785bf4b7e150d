"""``python -m matrixdp``: the command line."""

from matrixdp.cli import main

if __name__ == "__main__":
    main()
