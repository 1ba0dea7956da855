"""Back up, verify and restore, from the control machine; what runs on the hosts is in backup/."""
