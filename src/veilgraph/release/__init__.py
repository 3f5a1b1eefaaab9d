"""What is made public once, with exact noise: after it everything is ordinary work on public data."""
