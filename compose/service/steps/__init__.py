"""One file for each kind of step; every one takes its parameters and returns what it did."""
