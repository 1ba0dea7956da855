"""`lakehouse status`: what runs, what it holds and what is wrong, on one screen and within seconds."""
