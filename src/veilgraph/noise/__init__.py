"""Where noise is drawn, and nowhere else: behind a ledger, by one function that knows its price."""
