"""`python -m headwater`: the command line, where its script is not on the path."""

from headwater.cli import main

if __name__ == "__main__":
    main()
