"""``python -m fedhh``: the command line."""

from fedhh.cli import main

if __name__ == "__main__":
    main()
