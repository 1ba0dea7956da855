"""Verbs that change a cluster: a plan, a lock on the hosts, a gate before each step, a run that resumes."""
