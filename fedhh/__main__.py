"""``python -m fedhh``: the command line."""

from fedhh.cli.app import main

if __name__ == "__main__":
    main()
