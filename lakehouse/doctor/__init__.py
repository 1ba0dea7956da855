"""`lakehouse doctor`: what is wrong with a cluster that runs, one line per finding, with the next command."""
