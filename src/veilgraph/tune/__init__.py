"""Before a training: search for settings, free on what is unrestricted or charged, and rehearsal of what an ε would cost."""
