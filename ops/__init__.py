"""Day two: looking at a cluster that runs, over pyinfra, from the hosts of the Ansible inventory."""
