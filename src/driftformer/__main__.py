"""`python -m driftformer` is `driftformer`."""

from driftformer.cli import main

if __name__ == "__main__":
    main()
