"""What the kit's own modules share on a node, and the program that runs a unit in a container."""
