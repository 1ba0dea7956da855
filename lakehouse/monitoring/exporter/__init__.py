"""An exporter of what services answer: it asks their readiness questions, and reads their certificates."""
