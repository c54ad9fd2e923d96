"""Runs the command line as `python -m podium`."""

from podium.cli.main import main

if __name__ == "__main__":
    main()
