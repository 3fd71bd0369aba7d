"""hindsearch: train search-augmented language models and see which training signal helps."""

__version__ = "0.1.0"
