"""`lakehouse support-bundle`: what somebody needs who is to help, without secrets."""
