"""`python -m carbon_mind` is `carbon`."""

from carbon_mind.cli import main

if __name__ == "__main__":
    main()
