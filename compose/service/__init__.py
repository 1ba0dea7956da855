"""The program of a container: it starts a daemon, asks whether it works, and does once what comes before it.

Standard library only. Beside it in the image lies what the Ansible modules share: ``ansible.module_utils``.
"""
