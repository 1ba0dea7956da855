"""`lakehouse support-bundle`: what a helper needs, without secrets."""
