"""Another release in place of the one that runs, component by component, with the way back."""
