"""`python -m kept`: the command line, where `kept` is not on the path."""

from kept.entrypoints.cli import main

if __name__ == "__main__":
    main()
