"""What people look at: one self-contained HTML page per run, no network, no script."""
