"""``python -m lustrum`` is the command line."""

from lustrum.cli import main

if __name__ == "__main__":
    main()
